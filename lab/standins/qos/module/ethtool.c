// SPDX-License-Identifier: GPL-2.0-or-later
// Copyright (c) 2026, the rdma.cluster authors
// A stand-in of rdma.cluster's lab: `ethtool -S` with mlx5's statistics of the priorities (en_stats.c) after the driver's own, `ethtool -a`.
#include "standin_qos.h"

#define TRAFFIC 5
#define PAUSE 5

static const char *const traffic_names[TRAFFIC] = {
	"rx_prio%d_bytes", "rx_prio%d_packets", "rx_prio%d_discards", "tx_prio%d_bytes", "tx_prio%d_packets",
};
static const char *const pause_names[PAUSE] = {
	"rx_%s_pause", "rx_%s_pause_duration", "tx_%s_pause", "tx_%s_pause_duration", "rx_%s_pause_transition",
};
static const char *const storm_names[] = { "tx_pause_storm_warning_events", "tx_pause_storm_error_events" };

static struct port *port_of(const struct net_device *dev)
{
	return container_of(dev->ethtool_ops, struct port, ethtool);
}

static int own_count(const struct port *port)
{
	int pauses = hweight8(port->pfc) + (port->pause_rx || port->pause_tx);

	return PRIORITIES * TRAFFIC + pauses * PAUSE + ARRAY_SIZE(storm_names);
}

static int count_before(struct net_device *dev)
{
	const struct ethtool_ops *before = port_of(dev)->ethtool_before;
	int count = before->get_sset_count ? before->get_sset_count(dev, ETH_SS_STATS) : 0;

	return max(count, 0);
}

static int get_sset_count(struct net_device *dev, int set)
{
	const struct ethtool_ops *before = port_of(dev)->ethtool_before;

	if (set == ETH_SS_STATS)
		return count_before(dev) + own_count(port_of(dev));
	return before->get_sset_count ? before->get_sset_count(dev, set) : -EOPNOTSUPP;
}

static void pause_strings(u8 **text, const char *whose)
{
	int i;

	for (i = 0; i < PAUSE; i++)
		ethtool_sprintf(text, pause_names[i], whose);
}

static void get_strings(struct net_device *dev, u32 set, u8 *text)
{
	struct port *port = port_of(dev);
	char whose[8];
	int priority, i;

	if (port->ethtool_before->get_strings)
		port->ethtool_before->get_strings(dev, set, text);
	if (set != ETH_SS_STATS)
		return;
	text += count_before(dev) * ETH_GSTRING_LEN;
	for (priority = 0; priority < PRIORITIES; priority++)
		for (i = 0; i < TRAFFIC; i++)
			ethtool_sprintf(&text, traffic_names[i], priority);
	for (priority = 0; priority < PRIORITIES; priority++) {
		snprintf(whose, sizeof(whose), "prio%d", priority);
		if (port->pfc >> priority & 1)
			pause_strings(&text, whose);
	}
	if (port->pause_rx || port->pause_tx)
		pause_strings(&text, "global");
	for (i = 0; i < ARRAY_SIZE(storm_names); i++)
		ethtool_sprintf(&text, storm_names[i]);
}

static void get_stats(struct net_device *dev, struct ethtool_stats *stats, u64 *data)
{
	struct port *port = port_of(dev);
	struct counters *counters = &port->counters;
	int priority;

	if (port->ethtool_before->get_ethtool_stats)
		port->ethtool_before->get_ethtool_stats(dev, stats, data);
	data += count_before(dev);
	/* Nothing pauses and nothing is discarded here: what is left of the statistics stays 0. */
	memset(data, 0, own_count(port) * sizeof(*data));
	for (priority = 0; priority < PRIORITIES; priority++) {
		*data++ = atomic64_read(&counters->rx_bytes[priority]);
		*data++ = atomic64_read(&counters->rx_packets[priority]);
		data++;
		*data++ = atomic64_read(&counters->tx_bytes[priority]);
		*data++ = atomic64_read(&counters->tx_packets[priority]);
	}
}

static void get_pause(struct net_device *dev, struct ethtool_pauseparam *pause)
{
	struct port *port = port_of(dev);

	pause->autoneg = 0;
	pause->rx_pause = port->pause_rx;
	pause->tx_pause = port->pause_tx;
}

static int set_pause(struct net_device *dev, struct ethtool_pauseparam *pause)
{
	struct port *port = port_of(dev);
	int error = pause->autoneg ? -EINVAL : sabotaged(1);

	if (error)
		return error == 1 ? 0 : error;
	mutex_lock(&state_lock);
	if (pause->rx_pause || pause->tx_pause)
		set_pfc(port, 0);
	port->pause_rx = pause->rx_pause;
	port->pause_tx = pause->tx_pause;
	mutex_unlock(&state_lock);
	return 0;
}

void ethtool_attach(struct port *port)
{
	port->ethtool_before = port->dev->ethtool_ops;
	port->ethtool = *port->ethtool_before;
	port->ethtool.get_sset_count = get_sset_count;
	port->ethtool.get_strings = get_strings;
	port->ethtool.get_ethtool_stats = get_stats;
	port->ethtool.get_pauseparam = get_pause;
	port->ethtool.set_pauseparam = set_pause;
	port->dev->ethtool_ops = &port->ethtool;
}

void ethtool_detach(struct port *port)
{
	port->dev->ethtool_ops = port->ethtool_before;
}
