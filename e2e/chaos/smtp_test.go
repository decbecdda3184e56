package chaos

import (
	"bufio"
	"fmt"
	"net"
	"strings"
)

// An smtpTalk is one conversation, which it understands line by line.
type smtpTalk struct {
	p              *proxy
	client, server net.Conn
	commands       *bufio.Reader
	replies        *bufio.Reader
}

func talkSMTP(p *proxy, client, server net.Conn) {
	s := smtpTalk{p, client, server, bufio.NewReader(client), bufio.NewReader(server)}
	if s.strikes("dial before") || !s.passReply("dial") {
		return
	}
	for {
		line, err := s.commands.ReadString('\n')
		if err != nil {
			return
		}
		verb, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(line)), " ")
		if s.strikes(verb+" before") || !s.send(line) || !s.passReply(verb) {
			return
		}
		if verb == "DATA" && !s.passMessage() {
			return
		}
	}
}

// strikes reports whether the conversation ends here.
func (s smtpTalk) strikes(moment string) bool {
	a := s.p.trap.at(moment)
	switch a.kind {
	case actNothing:
		return false
	case actDown:
		s.p.goDown(a.during)
	case actReply:
		_, _ = fmt.Fprintf(s.client, "%s\r\n", a.reply)
	}
	return true
}

func (s smtpTalk) send(text string) bool {
	_, err := s.server.Write([]byte(text))
	return err == nil
}

// passReply hands the server's reply to the client, unless something strikes.
func (s smtpTalk) passReply(to string) bool {
	var reply strings.Builder
	for {
		line, err := s.replies.ReadString('\n')
		if err != nil {
			return false
		}
		reply.WriteString(line)
		if len(line) < 4 || line[3] != '-' {
			break
		}
	}
	if s.strikes(to + " after") {
		return false
	}
	_, err := s.client.Write([]byte(reply.String()))
	return err == nil
}

// passMessage hands over the message in two halves, and then the dot.
func (s smtpTalk) passMessage() bool {
	var lines []string
	for {
		line, err := s.commands.ReadString('\n')
		if err != nil {
			return false
		}
		if strings.TrimRight(line, "\r\n") == "." {
			break
		}
		lines = append(lines, line)
	}
	half := len(lines) / 2
	return s.send(strings.Join(lines[:half], "")) && !s.strikes("body after") &&
		s.send(strings.Join(lines[half:], "")) && !s.strikes("dot before") &&
		s.send(".\r\n") && s.passReply("dot")
}
