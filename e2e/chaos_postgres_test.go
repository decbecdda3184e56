package e2e

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// queries maps the queries of the sequence in store/queries to its steps.
var queries = map[string]string{
	"Recipients":                 "recipients",
	"InsertMissingDeliveries":    "prepare",
	"Deliveries":                 "rows",
	"Delivery":                   "read",
	"BeginDeliveryIfUnchanged":   "begin",
	"MarkSentIfNotSent":          "mark",
	"AbandonDeliveryIfUnchanged": "abandon",
	"FailPendingDelivery":        "fail",
	"RecordRefusalIfUnchanged":   "record",
	"HoldPendingDelivery":        "hold",
}

// A postgresSession is one connection. pgx prepares a statement once and then runs it by
// its name.
type postgresSession struct {
	p *proxy

	mu       sync.Mutex
	prepared map[string]string // step by statement name
	running  string            // step that the server has not completed
	last     string            // step before it
}

func handlePostgres(p *proxy, client, server net.Conn) {
	s := &postgresSession{p: p, prepared: map[string]string{}}
	var start [4]byte // the first message has no type
	if _, err := io.ReadFull(client, start[:]); err != nil {
		return
	}
	body := make([]byte, binary.BigEndian.Uint32(start[:])-4)
	if _, err := io.ReadFull(client, body); err != nil {
		return
	}
	if _, err := server.Write(append(start[:], body...)); err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		relayMessages(server, client, s.onResponse)
		_, _ = client.Close(), server.Close()
	}()
	relayMessages(client, server, s.onRequest)
	_, _ = client.Close(), server.Close()
	<-done
}

// relayMessages forwards messages until pass returns false.
func relayMessages(from, to net.Conn, pass func(kind byte, body []byte) bool) {
	for {
		var head [5]byte
		if _, err := io.ReadFull(from, head[:]); err != nil {
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(from, body); err != nil || !pass(head[0], body) {
			return
		}
		if _, err := to.Write(append(head[:], body...)); err != nil {
			return
		}
	}
}

// onRequest handles a message of the worker: Parse prepares a statement, Bind runs it.
func (s *postgresSession) onRequest(kind byte, body []byte) bool {
	first, rest, _ := bytes.Cut(body, []byte{0})
	second, _, _ := bytes.Cut(rest, []byte{0})
	switch kind {
	case 'P':
		s.mu.Lock()
		s.prepared[string(first)] = stepOf(string(second))
		s.mu.Unlock()
	case 'B':
		return s.onStep(s.step(string(second)))
	case 'Q':
		if string(first) == "commit" && s.lastStep() == "rows" {
			return s.onStep("commit")
		}
	}
	return true
}

func (s *postgresSession) step(statement string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.prepared[statement]
}

func (s *postgresSession) lastStep() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// onStep reports whether the worker may continue with a step.
func (s *postgresSession) onStep(step string) bool {
	s.mu.Lock()
	s.running, s.last = step, step
	s.mu.Unlock()
	return step == "" || !s.p.interrupts(step+" before")
}

// onResponse handles a message of the server: ReadyForQuery means that the step is done
// and committed.
func (s *postgresSession) onResponse(kind byte, _ []byte) bool {
	if kind != 'Z' {
		return true
	}
	s.mu.Lock()
	step := s.running
	s.running = ""
	s.mu.Unlock()
	return step == "" || !s.p.interrupts(step+" after")
}

func stepOf(query string) string {
	_, name, ok := strings.Cut(query, "-- name: ")
	if !ok {
		return ""
	}
	name, _, _ = strings.Cut(name, " ")
	return queries[name]
}

// The points of make chaos are the names of queries: one that is gone is never reached.
func TestChaosQueriesExist(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../store/queries/*.sql")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range files {
		all.WriteString(readFile(t, file))
	}
	for name := range queries {
		if !strings.Contains(all.String(), "-- name: "+name+" :") {
			t.Errorf("store/queries has no query %s", name)
		}
	}
}
