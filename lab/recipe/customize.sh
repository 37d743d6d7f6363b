#!/bin/sh
# Runs once, outside, on the finished root tree of an image: $1 root tree, $2 output folder, $3... packages to offer.
set -eu
root=$1
out=$2
shift 2

# The repository from which a machine installs: the packages, the headers of its own kernel, and all that they need beyond the root tree.
kernel=$(ls "$root/lib/modules")
chroot "$root" apt-get clean
chroot "$root" apt-get install --yes --quiet --no-install-recommends --download-only "$@" "linux-headers-$kernel"
mkdir -p "$root/srv/packages"
mv "$root"/var/cache/apt/archives/*.deb "$root/srv/packages/"
# Repack xz as zstd, which an emulated machine unpacks faster. The files in the packages stay the same.
for package in "$root"/srv/packages/*.deb; do
    parts=$(mktemp -d)
    (cd "$parts" && ar x "$package")
    if [ -f "$parts/data.tar.xz" ]; then
        xz --decompress "$parts/data.tar.xz"
        zstd --quiet --rm "$parts/data.tar"
        (cd "$parts" && rm "$package" && ar rc "$package" debian-binary control.tar.* data.tar.zst)
    fi
    rm -r "$parts"
done
(cd "$root/srv/packages" && dpkg-scanpackages --multiversion . > Packages)
rm -rf "$root"/etc/apt/sources.list.d/* "$root"/var/lib/apt/lists/*
echo 'deb [trusted=yes] file:/srv/packages ./' > "$root/etc/apt/sources.list"
chroot "$root" apt-get update --quiet

# No package asks a question here, so apt need not look for questions before each installation.
rm -f "$root/etc/apt/apt.conf.d/70debconf"

install -d -m 0700 "$root/var/cache/lab-bytecode"

# One host key per image, so that SSH can be strict about it; one user key.
rm -f "$root"/etc/ssh/ssh_host_*
ssh-keygen -q -t ed25519 -N '' -C 'lab host' -f "$root/etc/ssh/ssh_host_ed25519_key"
ssh-keygen -q -t ed25519 -N '' -C 'lab user' -f "$out/id_ed25519"
install -d -m 0700 "$root/root/.ssh"
install -m 0600 "$out/id_ed25519.pub" "$root/root/.ssh/authorized_keys"
cp "$root/etc/ssh/ssh_host_ed25519_key.pub" "$out/host_key.pub"

chroot "$root" systemctl --quiet enable systemd-networkd.service ssh.service lab-identity.service
chroot "$root" systemctl --quiet mask apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer \
    e2scrub_reap.service fstrim.timer getty@tty1.service systemd-networkd-wait-online.service kexec.service kexec-load.service
# The initrd was made when kexec may not have been there yet.
chroot "$root" update-initramfs -u -k "$kernel"
rm -f "$root/etc/hostname" "$root/etc/machine-id"
touch "$root/etc/machine-id"
cp "$root"/boot/vmlinuz-* "$out/vmlinuz"
cp "$root"/boot/initrd.img-* "$out/initrd.img"
