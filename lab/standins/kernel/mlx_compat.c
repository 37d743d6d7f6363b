// SPDX-License-Identifier: GPL-3.0-or-later
/* A stand-in of rdma.cluster's lab for the module of this name: it exports one symbol, which the others need. */
#include <linux/module.h>

int mlx_compat_standin(void);

int mlx_compat_standin(void)
{
	return 0;
}
EXPORT_SYMBOL(mlx_compat_standin);

static int __init mlx_compat_init(void)
{
	pr_info("mlx_compat: stand-in @MODULE@, without hardware\n");
	return 0;
}

static void __exit mlx_compat_exit(void)
{
}

module_init(mlx_compat_init);
module_exit(mlx_compat_exit);
MODULE_DESCRIPTION("Stand-in of rdma.cluster's lab for mlx_compat");
MODULE_VERSION("@MODULE@");
MODULE_LICENSE("GPL");
