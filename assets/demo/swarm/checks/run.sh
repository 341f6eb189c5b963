# Runs one check of slug.sh by name; exit code 0 means that it passes.
expect() {
  got=$(sh slug.sh "$1")
  if [ "$got" != "$2" ]; then
    echo "slug of '$1': expected '$2', got '$got'"
    exit 1
  fi
}
case "$1" in
  lowercase) expect 'Hello' 'hello'; expect 'NASA' 'nasa' ;;
  spaces) expect 'a b  c' 'a-b-c' ;;
  punctuation) expect 'hi, you!' 'hi-you' ;;
  trim) expect ' x ' 'x' ;;
  empty)
    sh slug.sh '' >/dev/null 2>&1
    code=$?
    if [ "$code" -ne 2 ]; then echo "empty title: expected exit code 2, got $code"; exit 1; fi ;;
  *) echo "no such check: $1"; exit 64 ;;
esac
echo "$1 passes"
