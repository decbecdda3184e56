package mail

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"
)

// A scriptedServer is a mail server that answers each verb with what replies has for
// it, "dot" for the end of a message and "greeting" for its first word; "2 RCPT" is
// the second RCPT of all. What is missing succeeds. The answer "drop" closes the
// connection, "hang" says nothing more.
type scriptedServer struct {
	addr    *net.TCPAddr
	replies map[string]string
	hung    chan struct{} // told each time a "hang" begins

	mu    sync.Mutex
	conns []string // the verbs that each connection has brought
	count map[string]int
}

// usualReplies are the answers other than 250.
var usualReplies = map[string]string{
	"greeting": "220 scripted",
	"EHLO":     "250-scripted\r\n250-AUTH PLAIN LOGIN SCRAM-SHA-256\r\n250 ENHANCEDSTATUSCODES",
	"DATA":     "354 go ahead",
	"QUIT":     "221 bye",
}

// serveScript serves until the test ends.
func serveScript(t *testing.T, replies map[string]string) *scriptedServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &scriptedServer{addr: l.Addr().(*net.TCPAddr), replies: replies, hung: make(chan struct{}, 8), count: map[string]int{}}
	var conns sync.WaitGroup
	stop, cancel := context.WithCancel(context.Background())
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			context.AfterFunc(stop, func() { _ = c.Close() })
			conns.Go(func() { defer func() { _ = c.Close() }(); s.converse(c) })
		}
	})
	t.Cleanup(func() { cancel(); _ = l.Close(); conns.Wait() })
	return s
}

func (s *scriptedServer) converse(c net.Conn) {
	s.mu.Lock()
	number := len(s.conns)
	s.conns = append(s.conns, "")
	s.mu.Unlock()
	lines := bufio.NewScanner(c)
	answer := func(verb string) bool {
		switch reply := s.hear(number, verb); reply {
		case "drop":
			return false
		case "hang":
			s.hung <- struct{}{}
			for lines.Scan() {
			}
			return false
		default:
			_, err := fmt.Fprintf(c, "%s\r\n", reply)
			return err == nil
		}
	}
	for ok := answer("greeting"); ok && lines.Scan(); {
		verb, _, _ := strings.Cut(strings.ToUpper(lines.Text()), " ")
		verb, _, _ = strings.Cut(verb, ":")
		if ok = answer(verb); ok && verb == "DATA" && s.replies[verb] == "" {
			for lines.Scan() && lines.Text() != "." {
			}
			ok = answer("dot")
		}
	}
}

// hear writes the verb down and returns what to say to it.
func (s *scriptedServer) hear(conn int, verb string) (reply string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count[verb]++
	if verb != "greeting" {
		s.conns[conn] += verb + " "
	}
	return cmp.Or(s.replies[fmt.Sprint(s.count[verb], " ", verb)], s.replies[verb], usualReplies[verb], "250 2.0.0 ok")
}

// heard is how often the verb was said.
func (s *scriptedServer) heard(verb string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count[verb]
}

// wait returns the connections once there are as many goodbyes as wanted.
func (s *scriptedServer) wait(t *testing.T, goodbyes int) []string {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		s.mu.Lock()
		said, conns := s.count["QUIT"], append([]string(nil), s.conns...)
		s.mu.Unlock()
		if said >= goodbyes {
			return conns
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d goodbyes, want %d: %q", said, goodbyes, conns)
		}
	}
}
