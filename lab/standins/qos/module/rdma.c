// SPDX-License-Identifier: GPL-2.0-or-later
// Copyright (c) 2026, the rdma.cluster authors
// A stand-in of rdma.cluster's lab: OFED's /sys/class/infiniband/DEVICE/tc/1/traffic_class, which holds for every connection (OFED 5.0).
#include <rdma/ib_verbs.h>

#include "standin_qos.h"

#define LONGEST 100

/* One RDMA device above an interface of ours. traffic_class: -1 for none. */
struct device_state {
	struct ib_device *device;
	struct kobject folder;
	struct kobject *tc;
	struct completion released;
	int traffic_class;
	int (*modify_qp)(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata);
};

static struct ib_client client;

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

static bool is_ours(struct ib_device *device)
{
	struct ib_device *other;
	struct port *port;
	bool found = false;

	mutex_lock(&state_lock);
	list_for_each_entry(port, &ports, list) {
		other = ib_device_get_by_netdev(port->dev, RDMA_DRIVER_UNKNOWN);
		if (other) {
			found |= other == device;
			ib_device_put(other);
		}
	}
	mutex_unlock(&state_lock);
	return found;
}

static int add_device(struct ib_device *device)
{
	struct device_state *state;
	int error;

	if (!ofed || !is_ours(device))
		return -EOPNOTSUPP;
	state = kzalloc(sizeof(*state), GFP_KERNEL);
	if (!state)
		return -ENOMEM;
	state->device = device;
	state->traffic_class = -1;
	init_completion(&state->released);
	state->tc = kobject_create_and_add("tc", &device->dev.kobj);
	if (!state->tc) {
		kfree(state);
		return -ENOMEM;
	}
	error = kobject_init_and_add(&state->folder, &folder_type, state->tc, "1");
	if (error) {
		kobject_put(&state->folder);
		kobject_put(state->tc);
		kfree(state);
		return error;
	}
	ib_set_client_data(device, &client, state);
	state->modify_qp = device->ops.modify_qp;
	device->ops.modify_qp = modify_qp;
	return 0;
}

static void remove_device(struct ib_device *device, void *data)
{
	struct device_state *state = data;

	device->ops.modify_qp = state->modify_qp;
	kobject_put(&state->folder);
	wait_for_completion(&state->released);
	kobject_put(state->tc);
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
