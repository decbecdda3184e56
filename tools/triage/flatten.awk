# flatten.awk turns JSON into lines "path TAB value", one per scalar, so that
# shell can read it where jq is not installed:
#
#   {"a":{"b":"x"},"c":[1]}   ->   a.b TAB x
#                                  c.0 TAB 1
#
# Control characters stay escaped as in JSON (\n, \u001b): a value is always one
# line and cannot send escape sequences to a terminal. With -v lines=1 every input
# line is a value of its own, and paths begin with its number.

lines { text = $0; trim(); if (text ~ /^\{/) value(NR); next }
{ text = text $0 "\n" }
END { if (!lines) { trim(); value("") } }

function trim() { sub(/^[ \t\r\n]+/, "", text) }

# take removes the first n characters and the space behind them.
function take(n,   taken) {
    if (n < 1) { print "flatten.awk: this is not JSON" > "/dev/stderr"; exit 1 }
    taken = substr(text, 1, n)
    text = substr(text, n + 1)
    trim()
    return taken
}

function begins(c) { return substr(text, 1, 1) == c }

function string(   s) {
    match(text, /^"[^"\\]*(\\.[^"\\]*)*"/)
    s = take(RLENGTH)
    s = substr(s, 2, length(s) - 2)
    gsub(/\\"/, "\"", s)
    gsub(/\\\//, "/", s)
    gsub(/\\u003c/, "<", s)
    gsub(/\\u003e/, ">", s)
    gsub(/\\u0026/, "\\&", s)
    gsub(/\\\\/, "\\", s)
    return s
}

function member(path, name) { value(path == "" ? name : path "." name) }

function value(path,   i, name) {
    if (begins("{")) {
        take(1)
        while (begins("\"")) {
            name = string()
            take(1) # the colon
            member(path, name)
            if (begins(",")) take(1)
        }
        take(1)
    } else if (begins("[")) {
        take(1)
        for (i = 0; text != "" && !begins("]"); i++) {
            member(path, i)
            if (begins(",")) take(1)
        }
        take(1)
    } else if (begins("\"")) {
        print path "\t" string()
    } else {
        match(text, /^[^],} \t\r\n]+/)
        print path "\t" take(RLENGTH)
    }
}
