#!/bin/sh
# One agent of the night bench, in every role. What it does was drawn beforehand: the Nth turn that may write sources
# turns/N.sh, later ones turns/rest.sh. The other roles only report, and are always content: a plan that cheats has a
# skeptic and a critic of the same mind.
#
#   calls        one line per call: its role
#   good/, bad/  the code of each function, right and wrong
here=${0%/*}
prompt=$(cat)
case $prompt in
*'You are the Scout'*) role=scout ;;
*'You are the Skeptic'*) role=skeptic ;;
*'You are the Critic'*) role=critic ;;
*'You are the Author'*) role=author ;;
*'You are the Solver'*) role=solver ;;
*) role=worker ;;
esac
echo "$role" >>"$here/calls"

# put good|bad PATH: the code of one function, right or wrong.
put() { mkdir -p "${2%/*}" && cp "$here/$1/$2" "$2"; }
fix() { put good "$1"; }
spoil() { put bad "$1"; }

# An artifact that is surely there.
shown=$(cat "$here/shown")

case $role in
scout) report='{"plan":["Do the next thing."],"suspect_files_ranked":["'$shown'"]}' ;;
skeptic)
    report='{"status":"PASS","succeeded":[{"lane":"B","text":"The change is there."}],"failed":[],"judged":[],"open_questions":[]}'
    ;;
critic)
    judged=
    case $prompt in *'"ITEM"'* | *'ITEM'*) judged='{"criterion":"1","met":true,"artifact":"'$shown'","why":"It is there."}' ;; esac
    report='{"status":"VERIFIED","can_further_iteration_help":false,"recommendation":"CONTINUE","reason":"I looked at it.","concerns":[],"judged":['$judged']}'
    ;;
*)
    turn=$(($(cat "$here/turn" 2>/dev/null || echo 0) + 1))
    echo "$turn" >"$here/turn"
    plan=$here/turns/$turn.sh
    [ -f "$plan" ] || plan=$here/turns/rest.sh
    . "$plan"
    report='{"intent":"Make the tests pass.","actions":["Turn '$turn' of the work."],"files_touched":["'$shown'"]}'
    if [ "$role" = author ]; then
        report='{"intent":"Make the tests pass.","actions":["Turn '$turn' of the work."],"files_touched":["'$shown'"],"notes":"Done as asked.","learnings":["Files are small here."],"retry":{"kind":"variable_changed","what":"the code","from":"turn '$((turn - 1))'","to":"turn '$turn'"}}'
    fi
    ;;
esac
printf '\n```json\n%s\n```\n' "$report"
