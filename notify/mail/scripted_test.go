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

	"github.com/criticizer/criticizer/internal/testkit"
)

// A scriptedServer is a mail server that answers each verb with its entry in
// replies: "dot" is the end of a message, "greeting" the first reply, "2 RCPT" the
// second RCPT of all connections. A verb without an entry succeeds. The reply
// "drop" closes the connection, "hang" never answers.
type scriptedServer struct {
	addr    *net.TCPAddr
	replies map[string]string
	hung    chan struct{} // closed when a "hang" starts
	hang    sync.Once

	mu    sync.Mutex
	conns []string // the verbs of each connection
	count map[string]int
}

// usualReplies are the replies other than 250 of a server that works.
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
	testkit.NoError(t, err)
	s := &scriptedServer{addr: l.Addr().(*net.TCPAddr), replies: replies, hung: make(chan struct{}), count: map[string]int{}}
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
		switch reply := s.next(number, verb); reply {
		case "drop":
			return false
		case "hang":
			s.hang.Do(func() { close(s.hung) })
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

// next records the verb and returns the reply to it.
func (s *scriptedServer) next(conn int, verb string) (reply string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count[verb]++
	if verb != "greeting" {
		s.conns[conn] += verb + " "
	}
	return cmp.Or(s.replies[fmt.Sprint(s.count[verb], " ", verb)], s.replies[verb], usualReplies[verb], "250 2.0.0 ok")
}

// heard returns how often the verb came.
func (s *scriptedServer) heard(verb string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count[verb]
}
