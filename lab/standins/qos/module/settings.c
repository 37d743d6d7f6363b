// SPDX-License-Identifier: GPL-2.0-or-later
// Copyright (c) 2026, the rdma.cluster authors
// A stand-in of rdma.cluster's lab: what the firmware of an adapter would keep, from its defaults on.
#include "standin_qos.h"

#define DEFAULT_CABLE_LENGTH_M 7
#define BUFFER_BYTES 262016
#define HALF_BUFFER_BYTES 130944

/* The defaults are those that mlxconfig tells of ConnectX-5 to -7. */
const struct value np_values[NP_VALUES] = {
	{ "min_time_between_cnps", "np_min_time_between_cnps", 32, 4 },
	{ "cnp_dscp", "np_cnp_dscp", 6, 48 },
	{ "cnp_802p_prio", "np_cnp_prio", 3, 6 },
};

const struct value rp_values[RP_VALUES] = {
	{ "clamp_tgt_rate", "rp_clamp_tgt_rate", 1, 0 },
	{ "clamp_tgt_rate_after_time_inc", "rp_clamp_tgt_rate_ati", 1, 1 },
	{ "rpg_time_reset", "rp_time_reset", 32, 300 },
	{ "rpg_byte_reset", "rp_byte_reset", 32, 32767 },
	{ "rpg_threshold", "rp_threshold", 32, 1 },
	{ "rpg_max_rate", "rp_max_rate", 32, 0 },
	{ "rpg_ai_rate", "rp_ai_rate", 32, 5 },
	{ "rpg_hai_rate", "rp_hai_rate", 32, 50 },
	{ "rpg_gd", "rp_gd", 32, 11 },
	{ "rpg_min_dec_fac", "rp_min_dec_fac", 32, 50 },
	{ "rpg_min_rate", "rp_min_rate", 32, 1 },
	{ "rate_to_set_on_first_cnp", "rp_rate_to_set_on_first_cnp", 32, 0 },
	{ "dce_tcp_g", "rp_dce_tcp_g", 32, 1019 },
	{ "dce_tcp_rtt", "rp_dce_tcp_rtt", 32, 1 },
	{ "rate_reduce_monitor_period", "rp_rate_reduce_monitor_period", 32, 4 },
	{ "initial_alpha_value", "rp_initial_alpha_value", 32, 1023 },
};

const struct value *values_of(enum point point)
{
	return point == NP ? np_values : rp_values;
}

int count_values(enum point point)
{
	return point == NP ? NP_VALUES : RP_VALUES;
}

/* What the firmware does while nobody has set the buffers: a lossless buffer of its own for the priorities with PFC. */
static void automatic_buffer(struct port *port)
{
	int i;

	for (i = 0; i < PRIORITIES; i++) {
		port->buffer.prio2buffer[i] = port->pfc >> i & 1;
		port->buffer.buffer_size[i] = 0;
	}
	port->buffer.buffer_size[0] = port->pfc ? HALF_BUFFER_BYTES : BUFFER_BYTES;
	port->buffer.buffer_size[1] = port->pfc ? HALF_BUFFER_BYTES : 0;
	port->buffer.total_size = BUFFER_BYTES;
}

void initial_settings(struct port *port)
{
	int point, i;

	for (i = 0; i < DSCPS; i++)
		port->dscp_to_priority[i] = i >> 3;
	port->ets.ets_cap = PRIORITIES;
	for (i = 0; i < PRIORITIES; i++) {
		port->ets.tc_tsa[i] = IEEE_8021QAZ_TSA_VENDOR;
		port->ets.prio_tc[i] = i;
	}
	/* Priority 1 is the lowest of 802.1Q. */
	port->ets.prio_tc[0] = 1;
	port->ets.prio_tc[1] = 0;
	port->cable_length_m = DEFAULT_CABLE_LENGTH_M;
	port->dcbx = DCB_CAP_DCBX_VER_CEE | DCB_CAP_DCBX_VER_IEEE | (firmware_dcbx ? 0 : DCB_CAP_DCBX_HOST);
	port->pause_rx = port->pause_tx = true;
	for (point = 0; point < POINTS; point++) {
		port->ecn[point] = 0xff;
		for (i = 0; i < count_values(point); i++)
			port->values[point][i] = values_of(point)[i].initial;
	}
	automatic_buffer(port);
}

/* A field of the firmware takes as many bits as it has, and says nothing of those that it drops. */
void set_value(struct port *port, enum point point, int index, u32 number)
{
	u8 bits = values_of(point)[index].bits;

	port->values[point][index] = bits == 32 ? number : number & (BIT(bits) - 1);
}

/* 1: the mask has changed. Global pause and PFC are one register: of the two, the later one holds. */
int set_pfc(struct port *port, u8 mask)
{
	if (port->pfc == mask)
		return 0;
	port->pfc = mask;
	if (mask)
		port->pause_rx = port->pause_tx = false;
	if (!port->manual_buffer)
		automatic_buffer(port);
	return 1;
}

void take_link_down(struct port *port)
{
	if (!netif_carrier_ok(port->dev) && !delayed_work_pending(&port->link_up))
		return;
	netif_carrier_off(port->dev);
	mod_delayed_work(system_wq, &port->link_up, msecs_to_jiffies(flap_ms));
}

/* Priorities, sizes, or both. A priority with PFC needs a buffer, and all of them together no more than there is. */
int set_buffer(struct port *port, const u8 *priority_to_buffer, const u32 *sizes)
{
	const u8 *buffers = priority_to_buffer ?: port->buffer.prio2buffer;
	u32 sum = 0;
	int i;

	sizes = sizes ?: port->buffer.buffer_size;
	for (i = 0; i < PRIORITIES; i++) {
		if (buffers[i] >= PRIORITIES || sizes[i] > port->buffer.total_size)
			return -EINVAL;
		sum += sizes[i];
		if (port->pfc >> i & 1 && !sizes[buffers[i]])
			return -EINVAL;
	}
	if (sum > port->buffer.total_size)
		return -EINVAL;
	port->manual_buffer = true;
	memmove(port->buffer.prio2buffer, buffers, PRIORITIES);
	memmove(port->buffer.buffer_size, sizes, PRIORITIES * sizeof(*sizes));
	return 0;
}
