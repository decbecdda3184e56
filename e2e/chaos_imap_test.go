package e2e

import (
	"bytes"
	"net"
	"regexp"
)

// handleIMAP reports the look-ups of an IMAP connection.
func handleIMAP(p *proxy, client, server net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		relayBytes(server, client, func(text []byte) ([]byte, bool) {
			if !bytes.Contains(text, []byte("Search completed")) {
				return text, true
			}
			a := p.trigger.at("look-up after")
			p.apply(a)
			if a.kind == actHideResult {
				text = searchResult.ReplaceAll(text, []byte("* SEARCH"))
			}
			return text, !a.kind.breaks()
		})
		_, _ = client.Close(), server.Close()
	}()
	relayBytes(client, server, func(text []byte) ([]byte, bool) {
		return text, !bytes.Contains(text, []byte("SEARCH")) || !p.interrupts("look-up before")
	})
	_, _ = client.Close(), server.Close()
	<-done
}

var searchResult = regexp.MustCompile(`\* SEARCH[0-9 ]*`)

// relayBytes forwards what pass returns, until pass reports false.
func relayBytes(from, to net.Conn, pass func([]byte) (text []byte, ok bool)) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		text, ok := pass(buffer[:n])
		if !ok {
			return
		}
		if _, err := to.Write(text); err != nil {
			return
		}
	}
}
