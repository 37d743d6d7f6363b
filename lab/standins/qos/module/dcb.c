// SPDX-License-Identifier: GPL-2.0-or-later
// Copyright (c) 2026, the rdma.cluster authors
// A stand-in of rdma.cluster's lab: DCB over netlink, with the rules of mlx5 (linux drivers/net/ethernet/mellanox/mlx5/core/en_dcbnl.c).
#include "standin_qos.h"

#define MAX_CABLE_LENGTH_M 1000
#define NOT_ETS_PERCENT 100

/* Every call comes under the rtnl lock, from an interface that is attached. */
static struct port *lock_port(struct net_device *dev)
{
	mutex_lock(&state_lock);
	return find_port(dev);
}

static int get_ets(struct net_device *dev, struct ieee_ets *ets)
{
	struct port *port = lock_port(dev);
	int i;

	*ets = port->ets;
	/* The firmware knows bandwidth alone: 100 is what a class has that shares with nobody. */
	for (i = 0; i < PRIORITIES; i++)
		if (ets->tc_tsa[i] != IEEE_8021QAZ_TSA_ETS)
			ets->tc_tx_bw[i] = NOT_ETS_PERCENT;
	mutex_unlock(&state_lock);
	return 0;
}

static bool is_sound(const struct ieee_ets *ets)
{
	bool shares = false;
	int i, sum = 0;

	for (i = 0; i < PRIORITIES; i++) {
		if (ets->prio_tc[i] >= PRIORITIES)
			return false;
		if (ets->tc_tsa[i] == IEEE_8021QAZ_TSA_ETS) {
			shares = true;
			sum += ets->tc_tx_bw[i];
		}
	}
	return !shares || sum == 100;
}

static int set_ets(struct net_device *dev, struct ieee_ets *ets)
{
	struct port *port;
	int error = is_sound(ets) ? sabotaged(1) : -EINVAL;

	if (error)
		return error == 1 ? 0 : error;
	port = lock_port(dev);
	memcpy(port->ets.prio_tc, ets->prio_tc, sizeof(ets->prio_tc));
	memcpy(port->ets.tc_tsa, ets->tc_tsa, sizeof(ets->tc_tsa));
	memcpy(port->ets.tc_tx_bw, ets->tc_tx_bw, sizeof(ets->tc_tx_bw));
	mutex_unlock(&state_lock);
	return 0;
}

static int get_maxrate(struct net_device *dev, struct ieee_maxrate *maxrate)
{
	*maxrate = lock_port(dev)->maxrate;
	mutex_unlock(&state_lock);
	return 0;
}

static int set_maxrate(struct net_device *dev, struct ieee_maxrate *maxrate)
{
	int error = sabotaged(1);

	if (error)
		return error == 1 ? 0 : error;
	lock_port(dev)->maxrate = *maxrate;
	mutex_unlock(&state_lock);
	return 0;
}

static int get_pfc(struct net_device *dev, struct ieee_pfc *pfc)
{
	struct port *port = lock_port(dev);

	pfc->pfc_cap = PRIORITIES;
	pfc->pfc_en = port->pfc;
	pfc->delay = port->cable_length_m;
	mutex_unlock(&state_lock);
	return 0;
}

static int set_pfc_and_cable(struct net_device *dev, struct ieee_pfc *pfc)
{
	struct port *port;
	int error = sabotaged(1);

	if (error)
		return error == 1 ? 0 : error;
	port = lock_port(dev);
	if (set_pfc(port, pfc->pfc_en))
		take_link_down(port);
	if (pfc->delay && pfc->delay < MAX_CABLE_LENGTH_M)
		port->cable_length_m = pfc->delay;
	mutex_unlock(&state_lock);
	return 0;
}

static struct dcb_app entry(const struct port *port, int dscp)
{
	return (struct dcb_app){
		.selector = IEEE_8021QAZ_APP_SEL_DSCP, .protocol = dscp, .priority = port->dscp_to_priority[dscp],
	};
}

/* The first entry for a DSCP makes the port trust DSCP. */
static int set_app(struct net_device *dev, struct dcb_app *app)
{
	struct dcb_app before;
	struct port *port;
	int error;

	if (app->selector != IEEE_8021QAZ_APP_SEL_DSCP || app->protocol >= DSCPS)
		return -EINVAL;
	error = sabotaged(1);
	if (error)
		return error == 1 ? 0 : error;
	port = lock_port(dev);
	before = entry(port, app->protocol);
	port->trust = TRUST_DSCP;
	port->dscp_to_priority[app->protocol] = app->priority;
	if (dcb_ieee_delapp(dev, &before))
		port->dscp_entries++;
	error = dcb_ieee_setapp(dev, app);
	mutex_unlock(&state_lock);
	return error;
}

/* A DSCP without entry has priority 0, not its default; without the last entry the port trusts PCP again. */
static int delete_app(struct net_device *dev, struct dcb_app *app)
{
	struct port *port;
	int error;

	if (app->selector != IEEE_8021QAZ_APP_SEL_DSCP || app->protocol >= DSCPS)
		return -EINVAL;
	error = sabotaged(1);
	if (error)
		return error == 1 ? 0 : error;
	port = lock_port(dev);
	error = -ENOENT;
	if (port->dscp_entries && app->priority == port->dscp_to_priority[app->protocol])
		error = dcb_ieee_delapp(dev, app);
	if (!error) {
		port->dscp_to_priority[app->protocol] = 0;
		if (!--port->dscp_entries)
			port->trust = TRUST_PCP;
	}
	mutex_unlock(&state_lock);
	return error;
}

/* The kernel asks this from within dcb_ieee_setapp too, where state_lock is held; the rtnl lock keeps the port where it is. */
static u8 get_dcbx(struct net_device *dev)
{
	return READ_ONCE(find_port(dev)->dcbx);
}

/* 0 is the firmware's, HOST the operating system's; 1 says no. */
static u8 set_dcbx(struct net_device *dev, u8 mode)
{
	struct port *port;

	if (mode & DCB_CAP_DCBX_LLD_MANAGED || (mode && !(mode & DCB_CAP_DCBX_HOST)) || refuse)
		return 1;
	port = lock_port(dev);
	if (!ignore)
		port->dcbx = mode ?: port->dcbx & ~DCB_CAP_DCBX_HOST;
	mutex_unlock(&state_lock);
	return 0;
}

static int get_buffer(struct net_device *dev, struct dcbnl_buffer *buffer)
{
	*buffer = lock_port(dev)->buffer;
	mutex_unlock(&state_lock);
	return 0;
}

static int set_buffer_of(struct net_device *dev, struct dcbnl_buffer *buffer)
{
	int error = sabotaged(1);

	if (error)
		return error == 1 ? 0 : error;
	error = set_buffer(lock_port(dev), buffer->prio2buffer, buffer->buffer_size);
	mutex_unlock(&state_lock);
	return error;
}

static const struct dcbnl_rtnl_ops operations = {
	.ieee_getets = get_ets,
	.ieee_setets = set_ets,
	.ieee_getmaxrate = get_maxrate,
	.ieee_setmaxrate = set_maxrate,
	.ieee_getpfc = get_pfc,
	.ieee_setpfc = set_pfc_and_cable,
	.ieee_setapp = set_app,
	.ieee_delapp = delete_app,
	.getdcbx = get_dcbx,
	.setdcbx = set_dcbx,
	.dcbnl_getbuffer = get_buffer,
	.dcbnl_setbuffer = set_buffer_of,
};

void dcb_attach(struct port *port)
{
	port->dcbnl_before = port->dev->dcbnl_ops;
	port->dev->dcbnl_ops = &operations;
}

void dcb_detach(struct port *port)
{
	struct dcb_app app;
	int i;

	/* The kernel tells of each entry that goes, and asks getdcbx for it. */
	for (i = 0; i < DSCPS; i++) {
		app = entry(port, i);
		dcb_ieee_delapp(port->dev, &app);
	}
	port->dev->dcbnl_ops = port->dcbnl_before;
}
