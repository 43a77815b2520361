#!/bin/sh
# A rank of a job of kill.py: LOCKS KIND ARGUMENTS. It takes a lock of its job's rank and one of its worker, which all processes that it
# starts hold, too, and notes where another process has one. Then it is the pretend trainer with these ARGUMENTS, or a sleep.
locks=$1
kind=$2
shift 2
server=${APPORTION_LEASE%/ranks/*}
note() {
    read -r up _ </proc/uptime
    echo "$up job $APPORTION_JOB start $APPORTION_INCARNATION rank $RANK on $server worker $CUDA_VISIBLE_DEVICES $1" >>"$locks/$2"
}
exec 8>>"$locks/job-$APPORTION_JOB.$RANK"
flock -n 8 || note "beside another start of it" violations
if [ -z "$SHARES" ]; then
    exec 9>>"$server/worker-$CUDA_VISIBLE_DEVICES"
    flock -n 9 || note "beside another job" violations
fi
note "" starts
case $kind in
group) sleep 900 & ;;
session) setsid sleep 900 & ;;
both) sleep 900 & setsid sleep 900 & ;;
silent) sleep "$1" && exit 0 ;;
esac
exec "$APPORTION" trainer "$@"
