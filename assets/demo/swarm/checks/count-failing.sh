# The residual: how many checks fail.
failing=0
for check in lowercase spaces punctuation trim empty; do
  sh checks/run.sh "$check" >/dev/null 2>&1 || failing=$((failing + 1))
done
echo "$failing"
