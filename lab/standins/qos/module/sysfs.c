// SPDX-License-Identifier: GPL-2.0-or-later
// Copyright (c) 2026, the rdma.cluster authors
// A stand-in of rdma.cluster's lab: the files that OFED's kernel has and upstream's has not, /sys/class/net/IF/{ecn,qos} (OFED 5.0).
#include <linux/device.h>

#include "standin_qos.h"

static const char *const point_names[POINTS] = { "roce_np", "roce_rp" };
static struct kobj_attribute np_files[NP_VALUES], rp_files[RP_VALUES], enable_files[POINTS][PRIORITIES];
static struct attribute *np_list[NP_VALUES + 1], *rp_list[RP_VALUES + 1], *enable_lists[POINTS][PRIORITIES + 1];
static const struct attribute_group point_groups[POINTS] = { { .attrs = np_list }, { .attrs = rp_list } };
static const struct attribute_group enable_groups[POINTS] = {
	{ .name = "enable", .attrs = enable_lists[NP] }, { .name = "enable", .attrs = enable_lists[RP] },
};
static const char *const digits[PRIORITIES] = { "0", "1", "2", "3", "4", "5", "6", "7" };

/* ecn/roce_np or its folder's folder: which point, and whose. state_lock is held where a port is found. */
static struct port *lock_folder(struct kobject *folder, enum point *point)
{
	struct device *device = kobj_to_dev(folder->parent->parent);
	struct port *port;

	mutex_lock(&state_lock);
	port = find_port(to_net_dev(device));
	if (!port)
		mutex_unlock(&state_lock);
	else
		*point = folder == port->point_folders[NP] ? NP : RP;
	return port;
}

static int index_of(enum point point, const struct kobj_attribute *file)
{
	return file - (point == NP ? np_files : rp_files);
}

static ssize_t show_value(struct kobject *folder, struct kobj_attribute *file, char *text)
{
	enum point point;
	struct port *port = lock_folder(folder, &point);
	u32 value;

	if (!port)
		return -ENODEV;
	value = port->values[point][index_of(point, file)];
	mutex_unlock(&state_lock);
	return sysfs_emit(text, "%d\n", value);
}

static ssize_t store_value(struct kobject *folder, struct kobj_attribute *file, const char *text, size_t count)
{
	enum point point;
	struct port *port;
	int number, error;

	if (sscanf(text, "%d", &number) != 1)
		return -EINVAL;
	error = sabotaged(1);
	if (error)
		return error == 1 ? count : error;
	port = lock_folder(folder, &point);
	if (!port)
		return -ENODEV;
	set_value(port, point, index_of(point, file), number);
	mutex_unlock(&state_lock);
	return count;
}

static ssize_t show_enable(struct kobject *folder, struct kobj_attribute *file, char *text)
{
	int priority = file->attr.name[0] - '0';
	enum point point;
	struct port *port = lock_folder(folder, &point);
	int on;

	if (!port)
		return -ENODEV;
	on = port->ecn[point] >> priority & 1;
	mutex_unlock(&state_lock);
	return sysfs_emit(text, "%d\n", on);
}

/* To enable what is enabled is refused. */
static ssize_t store_enable(struct kobject *folder, struct kobj_attribute *file, const char *text, size_t count)
{
	int priority = file->attr.name[0] - '0';
	enum point point;
	struct port *port;
	int on, error;

	if (sscanf(text, "%d", &on) != 1)
		return -EINVAL;
	error = sabotaged(1);
	if (error)
		return error == 1 ? count : error;
	port = lock_folder(folder, &point);
	if (!port)
		return -ENODEV;
	if (on && port->ecn[point] >> priority & 1)
		error = -EPERM;
	else if (on)
		port->ecn[point] |= BIT(priority);
	else
		port->ecn[point] &= ~BIT(priority);
	mutex_unlock(&state_lock);
	return error ?: count;
}

static void name_file(struct kobj_attribute *file, const char *name, void *show, void *store)
{
	sysfs_attr_init(&file->attr);
	file->attr.name = name;
	file->attr.mode = 0644;
	file->show = show;
	file->store = store;
}

static void name_files(void)
{
	int point, i;

	for (i = 0; i < NP_VALUES; i++) {
		name_file(&np_files[i], np_values[i].name, show_value, store_value);
		np_list[i] = &np_files[i].attr;
	}
	for (i = 0; i < RP_VALUES; i++) {
		name_file(&rp_files[i], rp_values[i].name, show_value, store_value);
		rp_list[i] = &rp_files[i].attr;
	}
	for (point = 0; point < POINTS; point++)
		for (i = 0; i < PRIORITIES; i++) {
			name_file(&enable_files[point][i], digits[i], show_enable, store_enable);
			enable_lists[point][i] = &enable_files[point][i].attr;
		}
}

static struct port *lock_device(struct device *device)
{
	mutex_lock(&state_lock);
	return find_port(to_net_dev(device));
}

static ssize_t maxrate_show(struct device *device, struct device_attribute *file, char *text)
{
	struct port *port = lock_device(device);
	int i, length = 0;

	for (i = 0; port && i < PRIORITIES; i++)
		length += sysfs_emit_at(text, length, "%lld ", port->maxrate.tc_maxrate[i]);
	mutex_unlock(&state_lock);
	return length + sysfs_emit_at(text, length, "\n");
}

static ssize_t maxrate_store(struct device *device, struct device_attribute *file, const char *text, size_t count)
{
	u64 n[PRIORITIES];
	struct port *port;
	int error;

	if (sscanf(text, "%llu %llu %llu %llu %llu %llu %llu %llu", &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6], &n[7]) != PRIORITIES)
		return -EINVAL;
	error = sabotaged(1);
	if (error)
		return error == 1 ? count : error;
	port = lock_device(device);
	if (port)
		memcpy(port->maxrate.tc_maxrate, n, sizeof(n));
	mutex_unlock(&state_lock);
	return port ? count : -ENODEV;
}
static DEVICE_ATTR_RW(maxrate);

static ssize_t tc_num_show(struct device *device, struct device_attribute *file, char *text)
{
	return sysfs_emit(text, "%d\n", netdev_get_num_tc(to_net_dev(device)));
}
static DEVICE_ATTR_RO(tc_num);

static ssize_t prio2buffer_show(struct device *device, struct device_attribute *file, char *text)
{
	int i, length = sysfs_emit(text, "Priority\tBuffer\n");
	struct port *port = lock_device(device);

	for (i = 0; port && i < PRIORITIES; i++)
		length += sysfs_emit_at(text, length, "%d\t\t%d\n", i, port->buffer.prio2buffer[i]);
	mutex_unlock(&state_lock);
	return length;
}

static ssize_t buffer_size_show(struct device *device, struct device_attribute *file, char *text)
{
	struct port *port = lock_device(device);
	int i, length = 0;

	if (port) {
		length = sysfs_emit(text, "Port buffer size = %d\nSpare buffer size = 0\n", port->buffer.total_size);
		length += sysfs_emit_at(text, length, "Buffer\tSize\txoff_threshold\txon_threshold\n");
	}
	for (i = 0; port && i < PRIORITIES; i++)
		length += sysfs_emit_at(text, length, "%d\t%d\t%d\t\t%d\n", i, port->buffer.buffer_size[i], 0, 0);
	mutex_unlock(&state_lock);
	return length;
}

static ssize_t store_buffer(struct device *device, const char *text, size_t count, bool is_size)
{
	unsigned int n[PRIORITIES];
	u8 buffers[PRIORITIES];
	struct port *port;
	int i, error;

	if (sscanf(text, "%u,%u,%u,%u,%u,%u,%u,%u", &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &n[6], &n[7]) != PRIORITIES)
		return -EINVAL;
	for (i = 0; i < PRIORITIES; i++)
		buffers[i] = min_t(unsigned int, n[i], 0xff);
	error = sabotaged(1);
	if (error)
		return error == 1 ? count : error;
	port = lock_device(device);
	error = port ? set_buffer(port, is_size ? NULL : buffers, is_size ? n : NULL) : -ENODEV;
	mutex_unlock(&state_lock);
	return error ?: count;
}

static ssize_t prio2buffer_store(struct device *device, struct device_attribute *file, const char *text, size_t count)
{
	return store_buffer(device, text, count, false);
}
static DEVICE_ATTR_RW(prio2buffer);

static ssize_t buffer_size_store(struct device *device, struct device_attribute *file, const char *text, size_t count)
{
	return store_buffer(device, text, count, true);
}
static DEVICE_ATTR_RW(buffer_size);

static struct attribute *qos_list[] = {
	&dev_attr_tc_num.attr, &dev_attr_maxrate.attr, &dev_attr_prio2buffer.attr, &dev_attr_buffer_size.attr, NULL,
};
static const struct attribute_group qos_group = { .name = "qos", .attrs = qos_list };

int sysfs_attach(struct port *port)
{
	int point, error = sysfs_create_group(&port->dev->dev.kobj, &qos_group);

	name_files();
	port->ecn_folder = kobject_create_and_add("ecn", &port->dev->dev.kobj);
	if (!port->ecn_folder)
		return -ENOMEM;
	for (point = 0; point < POINTS && !error; point++) {
		port->point_folders[point] = kobject_create_and_add(point_names[point], port->ecn_folder);
		if (!port->point_folders[point])
			return -ENOMEM;
		error = sysfs_create_group(port->point_folders[point], &point_groups[point]) ?:
			sysfs_create_group(port->point_folders[point], &enable_groups[point]);
	}
	return error;
}

void sysfs_detach(struct port *port)
{
	int point;

	if (!port->ecn_folder)
		return;
	sysfs_remove_group(&port->dev->dev.kobj, &qos_group);
	for (point = 0; point < POINTS; point++) {
		if (!port->point_folders[point])
			continue;
		sysfs_remove_group(port->point_folders[point], &enable_groups[point]);
		sysfs_remove_group(port->point_folders[point], &point_groups[point]);
		kobject_put(port->point_folders[point]);
	}
	kobject_put(port->ecn_folder);
}
