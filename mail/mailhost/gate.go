package mailhost

import (
	"io"
	"net"
	"sync"
)

// A Gate passes connections on to a server until it is shut.
type Gate struct {
	listener net.Listener
	target   string
	serving  sync.WaitGroup

	mu    sync.Mutex
	shut  bool
	conns map[net.Conn]bool
}

// OpenGate listens on a port of 127.0.0.1 for the server at target.
func OpenGate(target string) (*Gate, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g := &Gate{listener: l, target: target, conns: map[net.Conn]bool{}}
	g.serving.Go(g.serve)
	return g, nil
}

// Port is where the gate listens.
func (g *Gate) Port() int { return g.listener.Addr().(*net.TCPAddr).Port }

// Shut breaks all connections and hangs up on new ones.
func (g *Gate) Shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = true
	for c := range g.conns {
		_ = c.Close()
	}
}

// Open ends Shut.
func (g *Gate) Open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = false
}

// Close shuts the gate for good.
func (g *Gate) Close() error {
	err := g.listener.Close()
	g.Shut()
	g.serving.Wait()
	return err
}

func (g *Gate) serve() {
	for {
		c, err := g.listener.Accept()
		if err != nil {
			return
		}
		g.serving.Go(func() { g.pass(c) })
	}
}

func (g *Gate) pass(client net.Conn) {
	defer g.leave(client)
	if !g.enter(client) {
		return
	}
	server, err := net.Dial("tcp", g.target)
	if err != nil {
		return
	}
	defer g.leave(server)
	if !g.enter(server) {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
	_ = client.Close()
	<-done
}

func (g *Gate) enter(c net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.shut {
		g.conns[c] = true
	}
	return !g.shut
}

func (g *Gate) leave(c net.Conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.conns, c)
	_ = c.Close()
}
