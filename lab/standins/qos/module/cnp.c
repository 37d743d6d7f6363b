// SPDX-License-Identifier: GPL-2.0-or-later
// Copyright (c) 2026, the rdma.cluster authors
// A stand-in of rdma.cluster's lab: a RoCE packet that a switch has marked is answered with a CNP, and a CNP that arrives is counted.
//
// Both are real packets. A CNP of this stand-in names no queue pair (0) and has no ICRC, so it goes no further than the other stand-in's
// counter, and no sender becomes slower: of DCQCN it has the signals, not the rates.
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/udp.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/ip.h>

#include "standin_qos.h"

#define ROCE_PORT 4791
#define OPCODE_CNP 0x81
#define BECN 0x40
#define BTH_BYTES 12
#define PADDING_BYTES 16
#define ICRC_BYTES 4
#define CNP_BYTES (sizeof(struct udphdr) + BTH_BYTES + PADDING_BYTES + ICRC_BYTES)

struct roce {
	struct iphdr ip;
	struct udphdr udp;
	u8 opcode;
};

/* True for a packet of RoCE v2 over IPv4. */
static bool read_roce(const struct sk_buff *skb, struct roce *roce)
{
	int offset = skb_network_offset(skb);

	if (skb_copy_bits(skb, offset, &roce->ip, sizeof(roce->ip)) || roce->ip.protocol != IPPROTO_UDP || ip_is_fragment(&roce->ip))
		return false;
	offset += roce->ip.ihl * 4;
	if (skb_copy_bits(skb, offset, &roce->udp, sizeof(roce->udp)) || roce->udp.dest != htons(ROCE_PORT))
		return false;
	return !skb_copy_bits(skb, offset + sizeof(roce->udp), &roce->opcode, 1);
}

static void send_cnp(struct port *port, const struct sk_buff *marked, const struct roce *roce)
{
	struct sk_buff *skb = netdev_alloc_skb(port->dev, ETH_HLEN + NET_IP_ALIGN + sizeof(struct iphdr) + CNP_BYTES);
	struct ethhdr *eth;
	struct udphdr *udp;
	struct iphdr *ip;
	u8 *bth;

	if (!skb)
		return;
	skb_reserve(skb, NET_IP_ALIGN);
	skb_reset_mac_header(skb);
	eth = skb_put_zero(skb, ETH_HLEN);
	ether_addr_copy(eth->h_dest, eth_hdr(marked)->h_source);
	ether_addr_copy(eth->h_source, port->dev->dev_addr);
	eth->h_proto = htons(ETH_P_IP);
	skb_set_network_header(skb, skb->len);
	ip = skb_put_zero(skb, sizeof(*ip));
	ip->version = 4;
	ip->ihl = sizeof(*ip) / 4;
	ip->tos = port->values[NP][NP_CNP_DSCP] << 2;
	ip->tot_len = htons(sizeof(*ip) + CNP_BYTES);
	ip->ttl = 64;
	ip->protocol = IPPROTO_UDP;
	ip->saddr = roce->ip.daddr;
	ip->daddr = roce->ip.saddr;
	ip_send_check(ip);
	skb_set_transport_header(skb, skb->len);
	udp = skb_put_zero(skb, sizeof(*udp));
	udp->source = roce->udp.source;
	udp->dest = htons(ROCE_PORT);
	udp->len = htons(CNP_BYTES);
	bth = skb_put_zero(skb, BTH_BYTES + PADDING_BYTES + ICRC_BYTES);
	bth[0] = OPCODE_CNP;
	bth[2] = bth[3] = 0xff;
	bth[4] = BECN;
	skb->protocol = htons(ETH_P_IP);
	skb->dev = port->dev;
	dev_queue_xmit(skb);
	atomic64_inc(&port->congestion.np_cnp_sent);
}

/* What becomes of a packet that came in: a CNP goes no further. Runs where packets are received, one at a time. */
unsigned int congestion_in(struct port *port, struct sk_buff *skb, int priority)
{
	struct congestion *congestion = &port->congestion;
	ktime_t now = ktime_get();
	struct roce roce;

	if (skb->protocol != htons(ETH_P_IP) || !read_roce(skb, &roce))
		return NF_ACCEPT;
	if (roce.opcode == OPCODE_CNP) {
		atomic64_inc(port->ecn[RP] ? &congestion->rp_cnp_handled : &congestion->rp_cnp_ignored);
		return NF_DROP;
	}
	if (!INET_ECN_is_ce(roce.ip.tos))
		return NF_ACCEPT;
	atomic64_inc(&congestion->np_ecn_marked);
	if (!(port->ecn[NP] >> priority & 1) || ktime_us_delta(now, congestion->last_cnp) < port->values[NP][NP_MIN_TIME_BETWEEN_CNPS])
		return NF_ACCEPT;
	congestion->last_cnp = now;
	send_cnp(port, skb, &roce);
	return NF_ACCEPT;
}
