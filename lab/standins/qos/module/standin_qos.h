/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Copyright (c) 2026, the rdma.cluster authors */
/* A stand-in of rdma.cluster's lab: what mlx5 adds to an Ethernet interface for quality of service, for interfaces of other drivers. */
#ifndef STANDIN_QOS_H
#define STANDIN_QOS_H

#include <linux/dcbnl.h>
#include <linux/ethtool.h>
#include <linux/kobject.h>
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <linux/workqueue.h>
#include <net/dcbnl.h>

#define PRIORITIES 8
#define DSCPS 64
#define NP_VALUES 3
#define NP_MIN_TIME_BETWEEN_CNPS 0
#define NP_CNP_DSCP 1
#define RP_VALUES 16

enum trust { TRUST_PCP, TRUST_DSCP };

/* What the congestion control has: notification point (np) and reaction point (rp). */
enum point { NP, RP, POINTS };

struct counters {
	atomic64_t rx_bytes[PRIORITIES], rx_packets[PRIORITIES], tx_bytes[PRIORITIES], tx_packets[PRIORITIES];
};

/* What has been seen and said of congestion: the RDMA device's hw_counters. */
struct congestion {
	atomic64_t np_ecn_marked, np_cnp_sent, rp_cnp_handled, rp_cnp_ignored;
	ktime_t last_cnp;
};

/* One interface. state_lock guards list and settings, and is taken after the rtnl lock, never before it. */
struct port {
	struct list_head list;
	struct net_device *dev;
	char pci[32];

	const struct dcbnl_rtnl_ops *dcbnl_before;
	const struct ethtool_ops *ethtool_before;
	struct ethtool_ops ethtool;
	struct nf_hook_ops hooks[2];

	enum trust trust;
	u8 dscp_to_priority[DSCPS];
	int dscp_entries;
	struct ieee_ets ets;
	struct ieee_maxrate maxrate;
	struct dcbnl_buffer buffer;
	bool manual_buffer;
	u8 pfc;
	u16 cable_length_m;
	u8 dcbx;
	bool pause_rx, pause_tx;
	u32 values[POINTS][RP_VALUES];
	u8 ecn[POINTS];

	struct counters counters;
	struct congestion congestion;
	struct delayed_work link_up;
	struct kobject *ecn_folder, *point_folders[POINTS];
	struct dentry *debugfs;
};

/* One value of the congestion control: OFED's file, upstream's file (NULL: none), the width of its field, the firmware's default. */
struct value {
	const char *name, *debugfs;
	u8 bits;
	u32 initial;
};

extern const struct value np_values[NP_VALUES], rp_values[RP_VALUES];
extern struct mutex state_lock;
extern struct list_head ports;
extern bool ofed, refuse, ignore, firmware_dcbx;
extern unsigned int flap_ms;

struct port *find_port(const struct net_device *dev);
/* 0: go on. Else what the caller returns: an error, or `taken` where writes are to be accepted without effect. */
int sabotaged(int taken);

void initial_settings(struct port *port);
int set_pfc(struct port *port, u8 mask);
void take_link_down(struct port *port);
int set_buffer(struct port *port, const u8 *priority_to_buffer, const u32 *sizes);
void set_value(struct port *port, enum point point, int index, u32 number);
int count_values(enum point point);
const struct value *values_of(enum point point);

void dcb_attach(struct port *port);
void dcb_detach(struct port *port);
void ethtool_attach(struct port *port);
void ethtool_detach(struct port *port);
int count_attach(struct port *port);
void count_detach(struct port *port);
unsigned int congestion_in(struct port *port, struct sk_buff *skb, int priority);
int sysfs_attach(struct port *port);
void sysfs_detach(struct port *port);
void debugfs_attach(struct port *port);
void debugfs_detach(struct port *port);
int rdma_attach(void);
void rdma_detach(void);

#endif
