# Copyright (c) 2026, the rdma.cluster authors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The metrics of this collection: every name, with its meaning. The dashboard and the rules use no other name that begins with `rdma_`.

Names do not collide with those of node_exporter, which begin with `node_`. Units are base units: seconds, bytes, celsius, watts, volts.
"""

from __future__ import annotations

from ansible_collections.rdma.cluster.plugins.module_utils._metrics.exposition import COUNTER, Metric

# Results of runs. The control node's metrics.prom has them for all hosts; a host's own file has its own.
RUN_END = Metric("rdma_cluster_run_end_time_seconds", "When the last run ended.")
RUN_CLEAN = Metric("rdma_cluster_run_clean", "Whether it ended clean.")
GATE = Metric("rdma_cluster_gate", "The worst finding of a host at the gate of a stage, by status.")
GATE_TIME = Metric("rdma_cluster_gate_time_seconds", "When the gate of a stage last judged a host.")
FINDINGS = Metric("rdma_cluster_findings", "Findings of a host that are not ok, by check and status.")
PROOF_TIME = Metric("rdma_cluster_proof_time_seconds", "When a rail of a host was last measured and found good.")
DRIFT = Metric("rdma_cluster_drift", "Settings of a host that differ from the intent, by stage.")

# Ports, by rail.
HOST_INFO = Metric("rdma_host_info", "The kernel and the driver of RDMA cards of a host. The value is 1.")
PORT_INFO = Metric("rdma_port_info", "The port, interface and card of a rail. The value is 1.")
PORT_UP = Metric("rdma_port_up", "Whether the port of a rail is ACTIVE; 0 also if its NIC was not found.")
PORT_RATE = Metric("rdma_port_rate_bytes_per_second", "The negotiated rate of a port.")
PORT_EXPECTED_RATE = Metric("rdma_port_expected_rate_bytes_per_second", "The planned rate of a rail (rate_gbps of the intent).")
PORT_GID_INDEX = Metric("rdma_port_gid_index", "The GID index of RoCE v2 on the address of a rail.")

#: Counters of ports/N/hw_counters → meaning. node_exporter 1.5 reads only ports/N/counters. The names are those of mlx5, bnxt_re and rxe.
HW_COUNTERS = {
    "np_cnp_sent": "Congestion notification packets sent.",
    "np_ecn_marked_roce_packets": "RoCE packets received with an ECN mark.",
    "rp_cnp_handled": "Congestion notification packets handled.",
    "rp_cnp_ignored": "Congestion notification packets ignored.",
    "out_of_sequence": "Packets received out of order.",
    "out_of_buffer": "Packets dropped because the queue had no receive request.",
    "packet_seq_err": "NAKs received for a gap in the sequence.",
    "implied_nak_seq_err": "Acknowledgements that imply a lost packet.",
    "local_ack_timeout_err": "Timeouts of acknowledgements.",
    "rnr_nak_retry_err": "NAKs received because the receiver was not ready.",
    "duplicate_request": "Requests received twice.",
    "roce_adp_retrans": "Adaptive retransmissions.",
    "roce_adp_retrans_to": "Adaptive retransmissions after a timeout.",
    "roce_slow_restart": "Slow restarts of a queue pair.",
    "roce_slow_restart_cnps": "Congestion notification packets of slow restarts.",
    "rx_icrc_encapsulated": "RoCE packets received with a wrong checksum.",
    "req_cqe_error": "Requests completed with an error.",
    "resp_cqe_error": "Responses completed with an error.",
    "req_remote_access_errors": "Requests that the remote side refused.",
    "resp_remote_access_errors": "Refused requests of the remote side.",
    "out_of_seq_request": "Requests received out of order.",
    "rcvd_seq_err": "Sequence errors received.",
    "retry_exceeded_err": "Requests that failed after all retries.",
    "retry_rnr_exceeded_err": "Requests that failed because the receiver was never ready.",
    "send_err": "Failed send requests.",
}
HW_METRICS = {name: Metric(f"rdma_port_hw_{name}_total", words, COUNTER) for name, words in HW_COUNTERS.items()}

# Priorities of Ethernet ports, from the counters of the driver (`ethtool -S`).
PRIORITY_BYTES = Metric("rdma_port_priority_bytes_total", "Bytes of a priority, by direction.", COUNTER)
PAUSE_FRAMES = Metric("rdma_port_priority_pause_frames_total", "PFC frames of a priority. Received ones pause this port.", COUNTER)
PAUSE_SECONDS = Metric("rdma_port_priority_pause_seconds_total", "Time for which a priority was paused, by direction.", COUNTER)
DISCARDS = Metric("rdma_port_priority_discards_total", "Received frames of a priority that were dropped, by reason.", COUNTER)
ECN_MARKED = Metric("rdma_port_priority_ecn_marked_total", "Received frames of a priority in which this port set an ECN mark.", COUNTER)
QOS_DRIFT = Metric("rdma_qos_drift", "Settings of RoCE QoS of a rail that differ from the plan on the host.")

# Modules and PCIe.
OPTIC_TEMPERATURE = Metric("rdma_optic_temperature_celsius", "Temperature of the module of a rail.")
OPTIC_VOLTAGE = Metric("rdma_optic_voltage_volts", "Supply voltage of the module of a rail.")
OPTIC_RECEIVE = Metric("rdma_optic_receive_power_watts", "Received optical power of a lane.")
OPTIC_TRANSMIT = Metric("rdma_optic_transmit_power_watts", "Sent optical power of a lane.")
OPTIC_ALARMS = Metric("rdma_optic_alarms", "Readings of the module of a rail outside its own alarm limits.")
GPU_PATH = Metric("rdma_gpu_nic_path_info", "The nearest rail of a GPU and the PCIe path to it, as nvidia-smi names it. The value is 1.")

# The collector itself.
SCRAPE_ERROR = Metric("rdma_scrape_error", "Whether a source could not be read. Its samples are then missing.")
SCRAPE_TIME = Metric("rdma_scrape_time_seconds", "When the collector last ran.")
SCRAPE_DURATION = Metric("rdma_scrape_duration_seconds", "How long it ran.")

METRICS = (
    *(RUN_END, RUN_CLEAN, GATE, GATE_TIME, FINDINGS, PROOF_TIME, DRIFT, SCRAPE_TIME, SCRAPE_DURATION, SCRAPE_ERROR, HOST_INFO),
    *(PORT_INFO, PORT_UP, PORT_RATE, PORT_EXPECTED_RATE, PORT_GID_INDEX, QOS_DRIFT, PAUSE_FRAMES, PAUSE_SECONDS, DISCARDS, ECN_MARKED),
    *(PRIORITY_BYTES, OPTIC_ALARMS, OPTIC_TEMPERATURE, OPTIC_VOLTAGE, OPTIC_RECEIVE, OPTIC_TRANSMIT, GPU_PATH),
    *HW_METRICS.values(),
)
"""All metrics, in the order of a file."""
