# The Northstar metric vc-1: how many checks pass.
passing=0
for check in lowercase spaces punctuation trim empty; do
  sh checks/run.sh "$check" >/dev/null 2>&1 && passing=$((passing + 1))
done
echo "$passing"
