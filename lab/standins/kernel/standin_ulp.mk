# A stand-in of rdma.cluster's lab: builds standin_ulp against the symbols that the stack's own build has left.
K_BUILD ?= /lib/modules/$(KVER)/build
modules clean:
	$(MAKE) -C $(K_BUILD) M=$(CURDIR) KBUILD_EXTRA_SYMBOLS=/usr/src/ofa_kernel/$(shell uname -m)/$(KVER)/Module.symvers $@
