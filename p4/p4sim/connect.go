package main

import (
	"strconv"
	"strings"
)

// clientUsage goes with every error in the client's own options. It is not in
// the catalogue.
var clientUsage = &message{severity: failed, generic: evUsage, format: "p4 -h for usage."}

// An address is P4PORT in its parts; without a host it is this machine.
type address struct{ transport, host, number string }

func parseAddress(port string) address {
	parts := strings.Split(port, ":")
	a := address{"tcp", "localhost", parts[len(parts)-1]}
	if len(parts) > 1 {
		a.host = parts[len(parts)-2]
	}
	if len(parts) > 2 {
		a.transport = parts[0]
	}
	return a
}

// unreachable are the errors of connecting to an address where no server can
// be. Any other address reaches this one: nothing is ever dialed.
func (a address) unreachable() []utterance {
	n, err := strconv.Atoi(a.number)
	switch {
	case err == nil && n > 65535:
		return a.errors(tcpPortInvalid.byClient(a.number))
	case strings.HasSuffix(a.host, ".invalid"):
		return a.errors(nameUnresolved.byClient("Name or service not known"))
	case n == 1:
		return a.refusal()
	}
	return nil
}

// refusal are the errors of connecting to an address where nobody listens.
func (a address) refusal() []utterance {
	host := a.host
	if host == "localhost" {
		host = "127.0.0.1"
	}
	return a.errors(netFailed.byClient("connect", host+":"+a.number, "Connection refused"))
}

func (a address) errors(reason utterance) []utterance {
	found := []utterance{connectFailed.byClient()}
	if !strings.HasPrefix(a.transport, "ssl") {
		found = append(found, tcpConnectFailed.byClient(a.host+":"+a.number))
	}
	return append(found, reason)
}

// charsets are what P4CHARSET may be.
const charsets = `none, auto, utf8, utf8-bom, iso8859-1, shiftjis, eucjp, iso8859-15,
iso8859-5, macosroman, winansi, koi8-r, cp949, cp1251,
utf16, utf16-nobom, utf16le, utf16le-bom, utf16be,
utf16be-bom, utf32, utf32-nobom, utf32le, utf32le-bom, utf32be,
cp936, cp950, cp850, cp858, cp1253, iso8859-7, utf32be-bom,
cp852, cp1250, or iso8859-2.`

func knownCharset(name string) bool {
	for known := range strings.FieldsFuncSeq(charsets, func(r rune) bool { return strings.ContainsRune(", \n", r) }) {
		if strings.TrimSuffix(known, ".") == name && name != "or" {
			return true
		}
	}
	return false
}
