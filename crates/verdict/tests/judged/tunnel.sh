# A tunnel of ssh to an sshd, both of the folder it is called in: own keys, a port of this machine.
ssh-keygen -q -t ed25519 -N '' -f host && ssh-keygen -q -t ed25519 -N '' -f key && cp key.pub allowed || exit 1
# What root's sshd shuts its unprivileged half in; another user's needs none.
mkdir -p /run/sshd 2>/dev/null
for try in 1 2 3 4 5; do
    port=$(python3 -c 'import socket; s = socket.create_server(("127.0.0.1", 0)); print(s.getsockname()[1])')
    /usr/sbin/sshd -f /dev/null -p $port -h $PWD/host -E $PWD/log -o ListenAddress=127.0.0.1 -o PidFile=none \
        -o AuthorizedKeysFile=$PWD/allowed -o StrictModes=no -o UsePAM=no -o PermitRootLogin=yes || continue
    ssh -fN -F /dev/null -i $PWD/key -p $port -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
        -o ConnectTimeout=20 $(id -un)@127.0.0.1 && exit 0
done
exit 1
