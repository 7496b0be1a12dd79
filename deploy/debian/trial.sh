#!/bin/sh
# Installs, runs, upgrades, removes and purges the packages, as root in the root of a fresh Debian.
# The packages are in /packages. The caller gives it namespaces of its own for processes, mounts and network.
set -eu

# The capabilities of the unit.
unit=/lib/systemd/system/burnet.service

fail() {
    echo "trial: $1" >&2
    exit 1
}

step() {
    echo "==> $1"
}

# Runs a command with the unit's capabilities and, as far as this is possible without systemd, its view of the files.
as_unit() {
    caps=$(sed -n 's/^CapabilityBoundingSet=//p' "$unit" | tr 'A-Z\n' 'a-z ' | sed 's/cap_/+/g; s/  */,/g; s/,$//')
    exec unshare --mount sh -c '
        caps=$1; shift
        # ProtectSystem=strict, with the folders of the unit.
        mount -o remount,bind,ro /
        for folder in /var/lib/burnet /run /tmp; do mount --bind "$folder" "$folder"; mount -o remount,bind,rw "$folder"; done
        exec setpriv --bounding-set "-all,$caps" --no-new-privs "$@"
    ' sh "$caps" "$@"
}

# Waits until each app and service of the node runs.
wait_for_apps() {
    for _ in $(seq 300); do
        if burnet app list > /tmp/apps 2>&1 && grep -q forwarding /tmp/apps && ! grep -E 'starting|restart|waits' /tmp/apps; then
            return
        fi
        sleep 0.2
    done
    cat /tmp/apps /tmp/node.log
    fail "the apps do not run"
}

step "install"
dpkg --install /packages/burnet_*.deb /packages/burnet-lab_*.deb
burnet --version
[ -d /var/lib/burnet ] || fail "there is no state folder"
[ -f /etc/burnet/burnet.toml ] || fail "there is no configuration"

step "doctor, as the unit starts it"
(as_unit burnet doctor) || fail "a node cannot run here"

step "run, as the unit starts it"
mkdir -p /run/burnet
(as_unit burnet run --config /etc/burnet/burnet.toml) > /tmp/node.log 2>&1 &
node=$!
wait_for_apps
burnet app list
grep -q "not enforced" /tmp/node.log && grep "not enforced" /tmp/node.log
burnet reload
burnet emulate --topo ring,4 --controller 127.0.0.1:6653 --spanning-tree off > /tmp/emulate.log 2>&1 &
network=$!
for _ in $(seq 300); do
    [ "$(burnet links 2>/dev/null | grep -c 'of:')" -ge 8 ] && break
    sleep 0.2
done
burnet links
[ "$(burnet links | grep -c 'of:')" -ge 8 ] || { cat /tmp/emulate.log; fail "the links were not found"; }
kill "$network"

step "backup of the running node"
burnet key new operator
burnet backup --config /etc/burnet/burnet.toml /tmp/backup.tar
kill -TERM "$node"
wait "$node" || { cat /tmp/node.log; fail "the node did not end well"; }

step "upgrade"
echo '# changed by the operator' >> /etc/burnet/burnet.toml
dpkg --install --force-confdef --force-confold /packages/burnet_*.deb
grep -q 'changed by the operator' /etc/burnet/burnet.toml || fail "the upgrade replaced the configuration"
[ -f /var/lib/burnet/keys/operator.key ] || fail "the upgrade removed the state"

step "remove"
dpkg --remove burnet-lab burnet
[ ! -e /usr/bin/burnet ] || fail "the program is still there"
[ -f /var/lib/burnet/keys/operator.key ] || fail "remove removed the state"
[ -f /etc/burnet/burnet.toml ] || fail "remove removed the configuration"

step "install again, restore"
dpkg --install /packages/burnet_*.deb
burnet restore --config /etc/burnet/burnet.toml /tmp/backup.tar
grep -q 'changed by the operator' /etc/burnet/burnet.toml && fail "the configuration was not restored"

step "purge"
dpkg --purge burnet
for left in /var/lib/burnet /run/burnet /usr/share/doc/burnet; do
    [ ! -e "$left" ] || fail "purge left $left"
done
ls /etc/burnet
rm -rf /etc/burnet
echo "the packages passed"
