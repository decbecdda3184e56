package e2e

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"net"
	"strings"
	"time"
)

// An smtpServer is the mail server as the worker sees it: the proxy adds STARTTLS and
// AUTH to Postfix, so that faults can be injected there.
type smtpServer struct {
	certificate        tls.Certificate
	username, password string
}

// handle forwards one SMTP session.
func (o smtpServer) handle(p *proxy, client, server net.Conn) {
	s := &smtpSession{smtpServer: o, p: p, server: server, replies: bufio.NewReader(server)}
	s.setClient(client)
	if s.interrupts("dial before") || !s.passReply("dial") {
		return
	}
	for {
		line, err := s.commands.ReadString('\n')
		if err != nil {
			return
		}
		verb, _, _ := strings.Cut(strings.ToUpper(strings.TrimSpace(line)), " ")
		if s.interrupts(verb+" before") || !s.execute(verb, line) {
			return
		}
	}
}

// An smtpSession parses a session line by line.
type smtpSession struct {
	smtpServer
	p              *proxy
	client, server net.Conn
	secure         bool
	commands       *bufio.Reader
	replies        *bufio.Reader
}

func (s *smtpSession) setClient(client net.Conn) {
	s.client, s.commands = client, bufio.NewReader(client)
}

// execute handles a command and reports whether the session continues.
func (s *smtpSession) execute(verb, line string) bool {
	switch verb {
	case "STARTTLS":
		if s.interrupts("STARTTLS after") || !s.sendReply("220 2.0.0 go ahead") {
			return false
		}
		s.setClient(tls.Server(s.client, &tls.Config{Certificates: []tls.Certificate{s.certificate}, MinVersion: tls.VersionTLS12}))
		s.secure = true
		return true
	case "AUTH":
		return !s.interrupts("AUTH after") && s.sendReply(s.authenticate(line))
	case "DATA":
		return s.forward(line) && s.passReply(verb) && s.passMessage()
	}
	return s.forward(line) && s.passReply(verb)
}

// authenticate returns the reply to AUTH PLAIN.
func (s *smtpSession) authenticate(line string) string {
	want := "AUTH PLAIN " + base64.StdEncoding.EncodeToString([]byte("\x00"+s.username+"\x00"+s.password))
	if !s.secure || strings.TrimSpace(line) != want {
		return "535 5.7.8 authentication failed"
	}
	return "235 2.7.0 authenticated"
}

// interrupts injects the fault of a moment and reports whether the session ends.
func (s *smtpSession) interrupts(moment string) bool {
	a := s.p.trigger.at(moment)
	return a.kind != actNothing && s.inject(a)
}

func (s *smtpSession) inject(a action) bool {
	s.p.apply(a)
	if a.kind == actReply {
		s.sendReply(a.reply)
	}
	return a.kind.breaks()
}

func (s *smtpSession) sendReply(reply string) bool {
	_, err := fmt.Fprintf(s.client, "%s\r\n", reply)
	return err == nil
}

func (s *smtpSession) forward(text string) bool {
	_, err := s.server.Write([]byte(text))
	return err == nil
}

// passReply forwards the server's reply to the client unless a fault replaces it.
func (s *smtpSession) passReply(to string) bool {
	var reply []string
	for {
		line, err := s.replies.ReadString('\n')
		if err != nil {
			return false
		}
		reply = append(reply, strings.TrimRight(line, "\r\n"))
		if len(line) < 4 || line[3] != '-' {
			break
		}
	}
	if to == "EHLO" {
		reply = s.addExtension(reply)
	}
	a := s.p.trigger.at(to + " after")
	if a.kind == actWrongReply {
		return s.sendReply(a.reply)
	}
	return !s.inject(a) && s.sendReply(strings.Join(reply, "\r\n"))
}

// addExtension adds the proxy's own extension to the reply to EHLO.
func (s *smtpSession) addExtension(reply []string) []string {
	extension := "250-STARTTLS"
	if s.secure {
		extension = "250-AUTH PLAIN"
	}
	return append([]string{"250-" + reply[0][len("250-"):], extension}, reply[1:]...)
}

// passMessage forwards the message in two halves, then the dot.
func (s *smtpSession) passMessage() bool {
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
	s.alterMessage(lines)
	half := len(lines) / 2
	return s.forward(strings.Join(lines[:half], "")) && !s.interrupts("body after") &&
		s.forward(strings.Join(lines[half:], "")) && s.passDot() &&
		s.forward(".\r\n") && s.passReply("dot")
}

// alterMessage replaces a header if a fault says so.
func (s *smtpSession) alterMessage(lines []string) {
	header, with := "", ""
	switch s.p.trigger.at("header before").kind {
	case actRename:
		header, with = "Message-ID:", "Message-ID: <renamed@relay.test>\r\n"
	case actStrip:
		header, with = "X-Criticizer-Key:", "X-Criticized: yes\r\n"
	default:
		return
	}
	for i, line := range lines {
		if strings.HasPrefix(line, header) {
			lines[i] = with
		}
	}
}

// passDot reports whether the dot is to be sent now. A delayed dot is sent after the
// client's connection is closed.
func (s *smtpSession) passDot() bool {
	a := s.p.trigger.at("dot before")
	if a.kind != actDelay {
		return a.kind == actNothing || !s.inject(a)
	}
	if a.reply != "" {
		s.sendReply(a.reply)
	}
	_ = s.client.Close()
	time.Sleep(a.during)
	s.forward(".\r\n")
	_, _ = s.replies.ReadString('\n')
	return false
}
