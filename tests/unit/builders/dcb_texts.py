# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""What dcb of iproute2 6.1.0 prints as JSON, byte for byte, of answers that a stand-in for the kernel gave it: the roce profile's."""

PFC = '{"pfc_cap":8,"macsec_bypass":false,"delay":7,"prio_pfc":[false,false,false,true,false,false,false,false]}\n'
ETS = (
    '{"willing":false,"ets_cap":8,"cbs":false,"tc_bw":[50,0,0,50,0,0,0,0],"pg_bw":[0,0,0,0,0,0,0,0],'
    '"tc_tsa":["ets","ets","ets","ets","ets","ets","strict","ets"],"prio_tc":[0,0,0,3,0,0,6,0],"reco_tc_bw":[0,0,0,0,0,0,0,0],'
    '"reco_tc_tsa":["strict","strict","strict","strict","strict","strict","strict","strict"],"reco_prio_tc":[0,0,0,0,0,0,0,0]}\n'
)
APP = '{"dscp_prio":[[26,3],[48,6]]}\n'
#: As of iproute2 6.5, by its source.
APP_6_5 = '{"dscp_prio":[[26,3," "],[48,6," "]]}\n'
NO_APP = "{}\n"
DCBX = '{"host":true,"cee":true,"ieee":true}\n'
#: mlx5 whose firmware speaks DCBX itself.
FIRMWARE_DCBX = '{"cee":true,"ieee":true}\n'
BUFFER = '{"prio_buffer":[0,0,0,1,0,0,0,0],"buffer_size":[130944,262016,0,0,0,0,0,0],"total_size":2069280}\n'
#: Of the real kernel: an interface without DCB, one that is not there; and an attribute that a driver leaves out.
NO_DCB = "Attribute read: Operation not supported\n"
NO_DEVICE = "Attribute read: No such device\n"
LEFT_OUT = "Attribute not found: Success\n"
UNKNOWN_OBJECT = 'Object "dcbx" is unknown\n'
