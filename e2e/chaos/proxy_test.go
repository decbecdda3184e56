package chaos

import (
	"net"
	"sync"
	"time"
)

// A talker carries one connection through a proxy and returns when it is broken.
type talker func(p *proxy, client, server net.Conn)

// A proxy stands before one server.
type proxy struct {
	target   string
	trap     *trap
	talk     talker
	listener net.Listener
	talking  sync.WaitGroup

	mu    sync.Mutex
	until time.Time // down until then
	conns map[net.Conn]bool
}

func openProxy(target string, trap *trap, talk talker) (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{target: target, trap: trap, talk: talk, listener: l, conns: map[net.Conn]bool{}}
	p.talking.Go(p.serve)
	return p, nil
}

func (p *proxy) port() int { return p.listener.Addr().(*net.TCPAddr).Port }

func (p *proxy) close() {
	_ = p.listener.Close()
	p.goDown(0)
	p.talking.Wait()
}

// goDown breaks all connections and refuses new ones for a while.
func (p *proxy) goDown(during time.Duration) {
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
		p.talking.Go(func() {
			defer p.forget(client)
			if !p.keep(client) {
				return
			}
			server, err := net.Dial("tcp", p.target)
			if err != nil {
				return
			}
			defer p.forget(server)
			if p.keep(server) {
				p.talk(p, client, server)
			}
		})
	}
}

func (p *proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns[c] = true
	return time.Now().After(p.until)
}

func (p *proxy) forget(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	_ = c.Close()
}

// broken reports whether what is to happen at the moment breaks the
// connection.
func (p *proxy) broken(moment string) bool {
	a := p.trap.at(moment)
	p.suffer(a)
	return a.kind.breaks()
}

// suffer does what concerns the proxy itself.
func (p *proxy) suffer(a action) {
	switch a.kind {
	case actDown:
		p.goDown(a.during)
	case actSilence:
		time.Sleep(a.during)
	}
}
