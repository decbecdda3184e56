package main

import (
	"net"
	"strconv"
	"strings"
)

// clientUsage goes with every error in the client's own options. It is not in
// the catalogue.
var clientUsage = &message{severity: failed, generic: evUsage, format: "p4 -h for usage."}

// unreachable are the errors of connecting to an address where no server can
// be. Any other address reaches this one: nothing is ever dialed.
func unreachable(port string) []utterance {
	host, number, ok := strings.Cut(strings.TrimPrefix(port, "ssl:"), ":")
	if !ok {
		host, number = "localhost", host
	}
	n, err := strconv.Atoi(number)
	switch {
	case err == nil && n > 65535:
		return connectErrors(port, tcpPortInvalid.byClient(number))
	case strings.HasSuffix(host, ".invalid"):
		return connectErrors(port, nameUnresolved.byClient("Name or service not known"))
	case n == 1:
		return refusal(port)
	}
	return nil
}

// refusal are the errors of connecting to an address where nobody listens.
func refusal(port string) []utterance {
	host, number, ok := strings.Cut(strings.TrimPrefix(port, "ssl:"), ":")
	if !ok {
		host, number = "localhost", host
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	return connectErrors(port, netFailed.byClient("connect", net.JoinHostPort(host, number), "Connection refused"))
}

func connectErrors(port string, reason utterance) []utterance {
	errors := []utterance{connectFailed.byClient()}
	if !strings.HasPrefix(port, "ssl:") {
		errors = append(errors, tcpConnectFailed.byClient(strings.TrimPrefix(port, "tcp:")))
	}
	return append(errors, reason)
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
