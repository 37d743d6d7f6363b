// SPDX-License-Identifier: GPL-3.0-or-later
/* A stand-in of rdma.cluster's lab for the module of this name: it needs mlx_compat and drives nothing. */
#include <linux/module.h>

int mlx_compat_standin(void);

static int __init mlx5_core_init(void)
{
@SABOTAGE@	pr_info("mlx5_core: stand-in @MODULE@, without hardware\n");
	return mlx_compat_standin();
}

static void __exit mlx5_core_exit(void)
{
}

module_init(mlx5_core_init);
module_exit(mlx5_core_exit);
MODULE_DESCRIPTION("Stand-in of rdma.cluster's lab for mlx5_core: drives no hardware");
MODULE_VERSION("@MODULE@");
MODULE_LICENSE("GPL");
