package chaos

import (
	"bytes"
	"net"
)

// talkIMAP tells of searches.
func talkIMAP(p *proxy, client, server net.Conn) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		watch(server, client, func(text []byte) bool {
			return !bytes.Contains(text, []byte("Search completed")) || !p.broken("look-up after")
		})
		_, _ = client.Close(), server.Close()
	}()
	watch(client, server, func(text []byte) bool {
		return !bytes.Contains(text, []byte("SEARCH")) || !p.broken("look-up before")
	})
	_, _ = client.Close(), server.Close()
	<-done
}

// watch passes bytes on until some are not to be.
func watch(from, to net.Conn, pass func([]byte) bool) {
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil || !pass(buffer[:n]) {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
