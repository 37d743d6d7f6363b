// SPDX-License-Identifier: GPL-3.0-or-later
/* A stand-in of rdma.cluster's lab for a third party's module on top of the stack: while it is loaded, mlx_compat stays. */
#include <linux/module.h>

int mlx_compat_standin(void);

static int __init standin_ulp_init(void)
{
	return mlx_compat_standin();
}

static void __exit standin_ulp_exit(void)
{
}

module_init(standin_ulp_init);
module_exit(standin_ulp_exit);
MODULE_DESCRIPTION("Stand-in of rdma.cluster's lab for a third party's module");
MODULE_VERSION("1.0");
MODULE_LICENSE("GPL");
