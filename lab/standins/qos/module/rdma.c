// SPDX-License-Identifier: GPL-2.0-or-later
// Copyright (c) 2026, the rdma.cluster authors
// A stand-in of rdma.cluster's lab: OFED's /sys/class/infiniband/DEVICE/tc/1/traffic_class, which holds for every connection (OFED 5.0),
// and mlx5's hw_counters of congestion beside those of the device's own driver.
#include <rdma/ib_sysfs.h>
#include <rdma/ib_verbs.h>

#include "standin_qos.h"

#define LONGEST 100

/* One RDMA device above an interface of ours. traffic_class: -1 for none. */
struct device_state {
	const struct net_device *dev;
	struct kobject folder;
	struct kobject *tc;
	struct completion released;
	int traffic_class;
	int (*modify_qp)(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata);
};

static struct ib_client client;
static struct ib_port_attribute counter_files[4];

static ssize_t traffic_class_show(struct kobject *folder, struct kobj_attribute *file, char *text)
{
	int number = READ_ONCE(container_of(folder, struct device_state, folder)->traffic_class);

	return number < 0 ? 0 : sysfs_emit(text, "Global tclass=%d\n", number);
}

/* "106", "tclass=106"; less than 0 takes it back. */
static ssize_t traffic_class_store(struct kobject *folder, struct kobj_attribute *file, const char *text, size_t count)
{
	const char *number = strstarts(text, "tclass=") ? text + strlen("tclass=") : text;
	int value, error;

	if (count > LONGEST || kstrtoint(number, 0, &value) || value > 0xff)
		return -EINVAL;
	error = sabotaged(1);
	if (error)
		return error == 1 ? count : error;
	WRITE_ONCE(container_of(folder, struct device_state, folder)->traffic_class, value);
	return count;
}

static struct kobj_attribute traffic_class_file = __ATTR(traffic_class, 0644, traffic_class_show, traffic_class_store);
static struct attribute *folder_attrs[] = { &traffic_class_file.attr, NULL };
ATTRIBUTE_GROUPS(folder);

static void release(struct kobject *folder)
{
	complete(&container_of(folder, struct device_state, folder)->released);
}

static struct kobj_type folder_type = {
	.sysfs_ops = &kobj_sysfs_ops, .default_groups = folder_groups, .release = release,
};

/* The device's word counts, not the application's. */
static int modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct device_state *state = ib_get_client_data(qp->device, &client);
	int number = READ_ONCE(state->traffic_class);
	bool connected = qp->qp_type == IB_QPT_RC || qp->qp_type == IB_QPT_UC;

	if (number >= 0 && connected && mask & IB_QP_AV)
		attr->ah_attr.grh.traffic_class = number;
	return state->modify_qp(qp, attr, mask, udata);
}

static ssize_t show_counter(struct ib_device *device, u32 number, struct ib_port_attribute *file, char *text)
{
	struct device_state *state = ib_get_client_data(device, &client);
	struct port *port;
	s64 value = 0;

	mutex_lock(&state_lock);
	port = find_port(state->dev);
	if (port)
		value = atomic64_read((atomic64_t *)&port->congestion + (file - counter_files));
	mutex_unlock(&state_lock);
	return sysfs_emit(text, "%lld\n", value);
}

/* In the order of struct congestion. */
static struct ib_port_attribute counter_files[] = {
	__ATTR(np_ecn_marked_roce_packets, 0444, show_counter, NULL), __ATTR(np_cnp_sent, 0444, show_counter, NULL),
	__ATTR(rp_cnp_handled, 0444, show_counter, NULL), __ATTR(rp_cnp_ignored, 0444, show_counter, NULL),
};
static struct attribute *counter_list[] = {
	&counter_files[0].attr, &counter_files[1].attr, &counter_files[2].attr, &counter_files[3].attr, NULL,
};
static const struct attribute_group counter_group = { .name = "hw_counters", .attrs = counter_list };

/* The folder of the only port of a device of ours. */
static struct kobject *port_folder(struct ib_device *device)
{
	return list_first_entry(&device->coredev.port_list, struct kobject, entry);
}

/* The interface of ours that the device is above. */
static const struct net_device *interface_of(struct ib_device *device)
{
	const struct net_device *found = NULL;
	struct ib_device *other;
	struct port *port;

	mutex_lock(&state_lock);
	list_for_each_entry(port, &ports, list) {
		other = ib_device_get_by_netdev(port->dev, RDMA_DRIVER_UNKNOWN);
		if (other) {
			found = other == device ? port->dev : found;
			ib_device_put(other);
		}
	}
	mutex_unlock(&state_lock);
	return found;
}

static int add_traffic_class(struct ib_device *device, struct device_state *state)
{
	int error;

	state->tc = kobject_create_and_add("tc", &device->dev.kobj);
	if (!state->tc)
		return -ENOMEM;
	error = kobject_init_and_add(&state->folder, &folder_type, state->tc, "1");
	if (error) {
		kobject_put(&state->folder);
		kobject_put(state->tc);
		return error;
	}
	state->modify_qp = device->ops.modify_qp;
	device->ops.modify_qp = modify_qp;
	return 0;
}

static int add_device(struct ib_device *device)
{
	const struct net_device *dev = interface_of(device);
	struct device_state *state;
	int error = 0;

	if (!dev)
		return -EOPNOTSUPP;
	state = kzalloc(sizeof(*state), GFP_KERNEL);
	if (!state)
		return -ENOMEM;
	state->dev = dev;
	state->traffic_class = -1;
	init_completion(&state->released);
	ib_set_client_data(device, &client, state);
	if (ofed)
		error = add_traffic_class(device, state);
	if (error) {
		kfree(state);
		return error;
	}
	if (sysfs_merge_group(port_folder(device), &counter_group))
		dev_warn(&device->dev, "standin_qos: no counters of congestion\n");
	return 0;
}

static void remove_device(struct ib_device *device, void *data)
{
	struct device_state *state = data;

	sysfs_unmerge_group(port_folder(device), &counter_group);
	if (state->tc) {
		device->ops.modify_qp = state->modify_qp;
		kobject_put(&state->folder);
		wait_for_completion(&state->released);
		kobject_put(state->tc);
	}
	kfree(state);
}

static struct ib_client client = { .name = "standin_qos", .add = add_device, .remove = remove_device, .no_kverbs_req = 1 };

int rdma_attach(void)
{
	return ib_register_client(&client);
}

void rdma_detach(void)
{
	ib_unregister_client(&client);
}
