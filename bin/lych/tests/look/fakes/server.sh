# Started by a program that is deleted while it runs.
echo ready
while :; do sleep 1000; done
