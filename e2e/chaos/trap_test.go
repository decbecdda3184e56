package chaos

import (
	"net"
	"sync"
	"time"
)

// A trap waits for the strikes of one review. Proxies tell it of every moment.
type trap struct {
	kill func()

	mu      sync.Mutex
	strikes []strike
	skip    int // moments to let pass before the first strike
	sprung  bool
	down    time.Time // a server is out of reach until then
}

// set arms the trap, once everything that it has put out of reach is back.
func (t *trap) set(strikes []strike, skip int) {
	t.mu.Lock()
	back := t.down
	t.mu.Unlock()
	time.Sleep(time.Until(back))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.strikes, t.skip, t.sprung = strikes, skip, false
}

// done reports whether all strikes have struck.
func (t *trap) done() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sprung && len(t.strikes) == 0
}

// at is called at a moment and says what is to happen. A kill has happened
// when it returns.
func (t *trap) at(moment string) action {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.strikes) == 0 || t.strikes[0].moment != moment {
		return action{}
	}
	if t.skip > 0 {
		t.skip--
		return action{}
	}
	a := t.strikes[0].action
	t.strikes, t.sprung = t.strikes[1:], true
	switch a.kind {
	case actKill:
		t.kill()
	case actDown:
		t.down = time.Now().Add(a.during)
	}
	return a
}

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
	if a.kind == actDown {
		p.goDown(a.during)
	}
	return a.kind != actNothing
}
