// SPDX-License-Identifier: GPL-2.0-or-later
// Copyright (c) 2026, the rdma.cluster authors
// A stand-in of rdma.cluster's lab: every packet of the interface is counted in the priority that the settings in force give it.
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/netfilter_netdev.h>
#include <linux/tcp.h>
#include <net/dsfield.h>

#include "standin_qos.h"

/* Type of service and ECN bits of an IP packet; -1 for others. */
static int traffic_class(const struct sk_buff *skb)
{
	union { struct iphdr v4; struct ipv6hdr v6; } space;
	const void *header;

	if (skb_protocol(skb, true) == htons(ETH_P_IP)) {
		header = skb_header_pointer(skb, skb_network_offset(skb), sizeof(space.v4), &space.v4);
		return header ? ((const struct iphdr *)header)->tos : -1;
	}
	if (skb_protocol(skb, true) == htons(ETH_P_IPV6)) {
		header = skb_header_pointer(skb, skb_network_offset(skb), sizeof(space.v6), &space.v6);
		return header ? ipv6_get_dsfield(header) : -1;
	}
	return -1;
}

/* With trust in PCP a frame without VLAN tag has priority 0, whatever its DSCP says. */
static int priority_of(const struct port *port, const struct sk_buff *skb)
{
	int class = READ_ONCE(port->trust) == TRUST_DSCP ? traffic_class(skb) : -1;

	if (class >= 0)
		return READ_ONCE(port->dscp_to_priority[class >> 2]);
	return skb_vlan_tag_present(skb) ? skb_vlan_tag_get_prio(skb) : 0;
}

/* What the packet is on the wire, without FCS: one that the kernel has put together has a header a segment. */
static unsigned int wire_bytes(const struct sk_buff *skb, unsigned int mac, unsigned int segments)
{
	unsigned int header = mac + skb_transport_offset(skb) - skb_network_offset(skb);

	if (segments > 1 && skb_shinfo(skb)->gso_type & (SKB_GSO_TCPV4 | SKB_GSO_TCPV6))
		header += tcp_hdrlen(skb);
	return skb->len + (skb->data == skb_mac_header(skb) ? 0 : mac) + (segments - 1) * header;
}

static unsigned int count(void *private, struct sk_buff *skb, const struct nf_hook_state *state)
{
	struct port *port = private;
	struct counters *counters = &port->counters;
	int priority = priority_of(port, skb);
	unsigned int segments = max_t(unsigned int, 1, skb_is_gso(skb) ? skb_shinfo(skb)->gso_segs : 1);
	unsigned int bytes = wire_bytes(skb, ETH_HLEN, segments);

	if (state->hook == NF_NETDEV_INGRESS) {
		atomic64_add(bytes, &counters->rx_bytes[priority]);
		atomic64_add(segments, &counters->rx_packets[priority]);
		return congestion_in(port, skb, priority);
	}
	atomic64_add(bytes, &counters->tx_bytes[priority]);
	atomic64_add(segments, &counters->tx_packets[priority]);
	return NF_ACCEPT;
}

int count_attach(struct port *port)
{
	int i, error;

	for (i = 0; i < 2; i++) {
		port->hooks[i] = (struct nf_hook_ops){
			.hook = count,
			.dev = port->dev,
			.priv = port,
			.pf = NFPROTO_NETDEV,
			.hooknum = i ? NF_NETDEV_EGRESS : NF_NETDEV_INGRESS,
			.priority = INT_MIN,
		};
		error = nf_register_net_hook(dev_net(port->dev), &port->hooks[i]);
		if (error) {
			port->hooks[i].dev = NULL;
			return error;
		}
	}
	return 0;
}

void count_detach(struct port *port)
{
	int i;

	for (i = 0; i < 2; i++)
		if (port->hooks[i].dev)
			nf_unregister_net_hook(dev_net(port->dev), &port->hooks[i]);
	synchronize_net();
}
