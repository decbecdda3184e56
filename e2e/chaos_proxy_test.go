package e2e

import (
	"net"
	"sync"
	"time"
)

// A connHandler forwards one connection and returns when it is closed.
type connHandler func(p *proxy, client, server net.Conn)

// A proxy forwards connections to one server and injects faults.
type proxy struct {
	target   string
	trigger  *trigger
	handle   connHandler
	listener net.Listener
	handlers sync.WaitGroup

	mu    sync.Mutex
	until time.Time // down until then
	conns map[net.Conn]bool
}

func newProxy(target string, t *trigger, handle connHandler) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{target: target, trigger: t, handle: handle, listener: l, conns: map[net.Conn]bool{}}
	p.handlers.Go(p.serve)
	return p, nil
}

func (p *proxy) port() int { return p.listener.Addr().(*net.TCPAddr).Port }

func (p *proxy) close() {
	_ = p.listener.Close()
	p.takeDown(0)
	p.handlers.Wait()
}

// takeDown closes all connections and new ones for a while.
func (p *proxy) takeDown(during time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.until = time.Now().Add(during)
	for c := range p.conns {
		_ = c.Close()
	}
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.handlers.Go(func() {
			defer p.remove(client)
			if !p.add(client) {
				return
			}
			server, err := net.Dial("tcp", p.target)
			if err != nil {
				return
			}
			defer p.remove(server)
			if p.add(server) {
				p.handle(p, client, server)
			}
		})
	}
}

func (p *proxy) add(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = true
	return time.Now().After(p.until)
}

func (p *proxy) remove(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	_ = c.Close()
}

// interrupts applies the action of a moment and reports whether it closes the connection.
func (p *proxy) interrupts(moment string) bool {
	a := p.trigger.at(moment)
	p.apply(a)
	return a.kind.breaks()
}

// apply carries out the part of an action that concerns the proxy.
func (p *proxy) apply(a action) {
	switch a.kind {
	case actDown:
		p.takeDown(a.during)
	case actStall:
		time.Sleep(a.during)
	}
}
