// SPDX-License-Identifier: GPL-2.0-or-later
// Copyright (c) 2026, the rdma.cluster authors
// A stand-in of rdma.cluster's lab: upstream's /sys/kernel/debug/mlx5/PCI/cc_params (linux drivers/infiniband/hw/mlx5/cong.c).
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/uaccess.h>

#include "standin_qos.h"

#define LONGEST 11

static struct dentry *root;
static int users;

/* A file's i_private is the value's place in its table; its folder's is the port. */
static struct port *port_of(const struct file *file)
{
	return d_inode(file->f_path.dentry->d_parent)->i_private;
}

static bool is_np(const struct value *value)
{
	return value >= np_values && value < np_values + NP_VALUES;
}

static ssize_t read_value(struct file *file, char __user *buffer, size_t count, loff_t *offset)
{
	const struct value *value = file_inode(file)->i_private;
	enum point point = is_np(value) ? NP : RP;
	char text[LONGEST + 1];
	u32 number;

	mutex_lock(&state_lock);
	number = port_of(file)->values[point][value - values_of(point)];
	mutex_unlock(&state_lock);
	return simple_read_from_buffer(buffer, count, offset, text, scnprintf(text, sizeof(text), "%d\n", number));
}

static ssize_t write_value(struct file *file, const char __user *buffer, size_t count, loff_t *offset)
{
	const struct value *value = file_inode(file)->i_private;
	enum point point = is_np(value) ? NP : RP;
	u32 number;
	int error;

	if (count > LONGEST || kstrtou32_from_user(buffer, count, 0, &number))
		return -EINVAL;
	error = sabotaged(1);
	if (error)
		return error == 1 ? count : error;
	mutex_lock(&state_lock);
	set_value(port_of(file), point, value - values_of(point), number);
	mutex_unlock(&state_lock);
	return count;
}

static const struct file_operations value_operations = {
	.owner = THIS_MODULE, .open = simple_open, .read = read_value, .write = write_value,
};

void debugfs_attach(struct port *port)
{
	struct dentry *folder;
	int point, i;

	if (!users++)
		root = debugfs_create_dir("mlx5", NULL);
	port->debugfs = debugfs_create_dir(port->pci, root);
	folder = debugfs_create_dir("cc_params", port->debugfs);
	if (IS_ERR(folder))
		return;
	d_inode(folder)->i_private = port;
	for (point = 0; point < POINTS; point++)
		for (i = 0; i < count_values(point); i++)
			debugfs_create_file(values_of(point)[i].debugfs, 0600, folder, (void *)&values_of(point)[i], &value_operations);
}

void debugfs_detach(struct port *port)
{
	if (!port->debugfs)
		return;
	debugfs_remove_recursive(port->debugfs);
	if (!--users)
		debugfs_remove_recursive(root);
}
