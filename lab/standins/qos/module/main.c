// SPDX-License-Identifier: GPL-2.0-or-later
// Copyright (c) 2026, the rdma.cluster authors
// A stand-in of rdma.cluster's lab: finds the interfaces, now and when they come, and takes every trace away again when it is unloaded.
#include <linux/module.h>
#include <linux/rtnetlink.h>

#include "standin_qos.h"

#define MAX_DEVICES 16

bool ofed, refuse, ignore, firmware_dcbx;
unsigned int flap_ms = 1000;
static unsigned int overwrite_ms;
static char *devices[MAX_DEVICES];
static int devices_count;

module_param_array(devices, charp, &devices_count, 0444);
MODULE_PARM_DESC(devices, "PCI addresses of the interfaces: 0000:21:00.0,0000:41:00.0");
module_param(ofed, bool, 0444);
MODULE_PARM_DESC(ofed, "the files of OFED's kernel (sysfs) instead of upstream's (debugfs)");
module_param(firmware_dcbx, bool, 0444);
MODULE_PARM_DESC(firmware_dcbx, "DCBX is the firmware's at first");
module_param(refuse, bool, 0644);
MODULE_PARM_DESC(refuse, "sabotage: every write is refused (EPERM)");
module_param(ignore, bool, 0644);
MODULE_PARM_DESC(ignore, "sabotage: every write is taken and changes nothing");
module_param(flap_ms, uint, 0644);
MODULE_PARM_DESC(flap_ms, "how long the link is down after a change of PFC");

DEFINE_MUTEX(state_lock);
LIST_HEAD(ports);

static void overwrite(struct work_struct *work);
static DECLARE_DELAYED_WORK(overwriting, overwrite);

/* As a DCBX peer would: PFC is off again, and nobody has asked for it. */
static void overwrite(struct work_struct *work)
{
	struct port *port;

	mutex_lock(&state_lock);
	list_for_each_entry(port, &ports, list)
		set_pfc(port, 0);
	mutex_unlock(&state_lock);
	if (overwrite_ms)
		schedule_delayed_work(&overwriting, msecs_to_jiffies(overwrite_ms));
}

static int set_overwrite(const char *text, const struct kernel_param *parameter)
{
	int error = param_set_uint(text, parameter);

	if (!error && overwrite_ms)
		mod_delayed_work(system_wq, &overwriting, msecs_to_jiffies(overwrite_ms));
	return error;
}

static const struct kernel_param_ops overwrite_ops = { .set = set_overwrite, .get = param_get_uint };
module_param_cb(overwrite_ms, &overwrite_ops, &overwrite_ms, 0644);
MODULE_PARM_DESC(overwrite_ms, "sabotage: PFC is reset behind our back again and again; 0 ends it");

int sabotaged(int taken)
{
	if (refuse)
		return -EPERM;
	return ignore ? taken : 0;
}

/* Under state_lock or the rtnl lock: the list is changed under both. */
struct port *find_port(const struct net_device *dev)
{
	struct port *port;

	list_for_each_entry(port, &ports, list)
		if (port->dev == dev)
			return port;
	return NULL;
}

/* The PCI address among the parameter's that the interface's device lies below; NULL for the interfaces of others. */
static const char *address_of(const struct net_device *dev)
{
	const struct device *device;
	int i;

	for (device = dev->dev.parent; device; device = device->parent)
		for (i = 0; i < devices_count; i++)
			if (!strcmp(dev_name(device), devices[i]))
				return devices[i];
	return NULL;
}

static void link_up(struct work_struct *work)
{
	struct port *port = container_of(to_delayed_work(work), struct port, link_up);

	netif_carrier_on(port->dev);
}

static void attach(struct net_device *dev)
{
	const char *address = address_of(dev);
	struct port *port;

	ASSERT_RTNL();
	if (!address || dev->dcbnl_ops)
		return;
	port = kzalloc(sizeof(*port), GFP_KERNEL);
	if (!port)
		return;
	port->dev = dev;
	strscpy(port->pci, address, sizeof(port->pci));
	INIT_DELAYED_WORK(&port->link_up, link_up);
	initial_settings(port);
	mutex_lock(&state_lock);
	list_add(&port->list, &ports);
	mutex_unlock(&state_lock);
	if (count_attach(port))
		netdev_warn(dev, "standin_qos: packets are not counted\n");
	dcb_attach(port);
	ethtool_attach(port);
	if (ofed) {
		if (sysfs_attach(port))
			netdev_warn(dev, "standin_qos: not all files are there\n");
	} else {
		debugfs_attach(port);
	}
	netdev_info(dev, "standin_qos: a stand-in for mlx5's quality of service (%s)\n", ofed ? "OFED" : "upstream");
}

static void detach(struct port *port)
{
	ASSERT_RTNL();
	dcb_detach(port);
	ethtool_detach(port);
	count_detach(port);
	/* Readers of the files take state_lock: it must be free here. */
	sysfs_detach(port);
	debugfs_detach(port);
	mutex_lock(&state_lock);
	list_del(&port->list);
	mutex_unlock(&state_lock);
	if (cancel_delayed_work_sync(&port->link_up))
		netif_carrier_on(port->dev);
	kfree(port);
}

static int device_event(struct notifier_block *block, unsigned long event, void *data)
{
	struct net_device *dev = netdev_notifier_info_to_dev(data);
	struct port *port;

	if (event == NETDEV_REGISTER) {
		attach(dev);
	} else if (event == NETDEV_UNREGISTER) {
		mutex_lock(&state_lock);
		port = find_port(dev);
		mutex_unlock(&state_lock);
		if (port)
			detach(port);
	}
	return NOTIFY_DONE;
}

static struct notifier_block notifier = { .notifier_call = device_event };

static void detach_all(void)
{
	struct port *port, *next;

	rtnl_lock();
	list_for_each_entry_safe(port, next, &ports, list)
		detach(port);
	rtnl_unlock();
}

static int __init standin_init(void)
{
	/* It tells of every interface that there is already. */
	int error = register_netdevice_notifier(&notifier);

	if (error)
		return error;
	error = rdma_attach();
	if (error) {
		unregister_netdevice_notifier(&notifier);
		detach_all();
	}
	return error;
}

static void __exit standin_exit(void)
{
	overwrite_ms = 0;
	cancel_delayed_work_sync(&overwriting);
	rdma_detach();
	/* It tells of every interface as if it went away. */
	unregister_netdevice_notifier(&notifier);
	detach_all();
}

module_init(standin_init);
module_exit(standin_exit);
MODULE_AUTHOR("the rdma.cluster authors");
MODULE_DESCRIPTION("a stand-in of rdma.cluster's lab for mlx5's quality of service");
MODULE_LICENSE("GPL");
MODULE_VERSION("1.0");
