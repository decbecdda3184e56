package inbox

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/emersion/go-smtp"
)

// A Stage is a point of an SMTP transaction at which a fault can strike.
type Stage string

// The stages, in the order of a transaction.
const (
	StageMail Stage = "mail" // at MAIL
	StageRcpt Stage = "rcpt" // at RCPT
	StageData Stage = "data" // at DATA, instead of the go-ahead
	StageBody Stage = "body" // before the message is read
	StageDot  Stage = "dot"  // the message was read, and is not kept yet
	StageKept Stage = "kept" // the message is on disk, and the sender does not know
)

// An Action is what a fault does.
type Action string

// The actions.
const (
	ActionReply Action = "reply" // answers Code
	ActionDrop  Action = "drop"  // closes the connection without an answer
	ActionHang  Action = "hang"  // waits, then goes on as if nothing had been
)

// A Fault makes coming transactions fail, to see what a sender makes of it.
type Fault struct {
	Stage  Stage  `json:"stage"`
	Action Action `json:"action"`
	// Code and Enhanced are the reply of ActionReply, such as 550 and 5.1.1.
	Code     int    `json:"code,omitempty"`
	Enhanced string `json:"enhanced,omitempty"`
	// HangMS is how long ActionHang waits. Default: a minute.
	HangMS int `json:"hang_ms,omitempty"`
	// Times is how often the fault strikes. Default: once.
	Times int `json:"times,omitempty"`
}

var enhancedPattern = regexp.MustCompile(`^[45]\.\d{1,3}\.\d{1,3}$`)

func (f Fault) validate() error {
	switch f.Stage {
	case StageMail, StageRcpt, StageData, StageBody, StageDot, StageKept:
	default:
		return fmt.Errorf("inject fault: stage %q is unknown: want mail, rcpt, data, body, dot or kept", f.Stage)
	}
	switch {
	case f.Action != ActionReply && f.Action != ActionDrop && f.Action != ActionHang:
		return fmt.Errorf("inject fault: action %q is unknown: want reply, drop or hang", f.Action)
	case f.Action == ActionReply && (f.Code < 400 || f.Code > 599):
		return fmt.Errorf("inject fault: code %d is not one of a failure: want 400 to 599", f.Code)
	case f.Enhanced != "" && !enhancedPattern.MatchString(f.Enhanced):
		return fmt.Errorf("inject fault: enhanced code %q: want one such as 5.1.1", f.Enhanced)
	case f.Times < 0 || f.HangMS < 0:
		return fmt.Errorf("inject fault: times %d and hang_ms %d must not be negative", f.Times, f.HangMS)
	}
	return nil
}

// Inject makes the inbox fail as f says, after the faults injected before.
func (b *Inbox) Inject(f Fault) error {
	if err := f.validate(); err != nil {
		return err
	}
	f.Times = cmp.Or(f.Times, 1)
	b.faults.add(f)
	return nil
}

// ClearFaults forgets the faults that have not struck.
func (b *Inbox) ClearFaults() { b.faults.clear() }

// faults are the faults that have yet to strike. Safe for concurrent use.
type faults struct {
	mu      sync.Mutex
	pending []Fault
}

func (fs *faults) add(f Fault) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.pending = append(fs.pending, f)
}

func (fs *faults) clear() {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.pending = nil
}

func (fs *faults) list() []Fault {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return append([]Fault{}, fs.pending...)
}

// take uses up one strike of the first fault of the stage.
func (fs *faults) take(at Stage) (Fault, bool) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	i := slices.IndexFunc(fs.pending, func(f Fault) bool { return f.Stage == at })
	if i < 0 {
		return Fault{}, false
	}
	f := fs.pending[i]
	if fs.pending[i].Times--; fs.pending[i].Times == 0 {
		fs.pending = slices.Delete(fs.pending, i, i+1)
	}
	return f, true
}

// strike applies the next fault of the stage, if there is one. Its error is the
// reply to give; that of a drop reaches nobody.
func (fs *faults) strike(ctx context.Context, at Stage, conn net.Conn) error {
	f, ok := fs.take(at)
	if !ok {
		return nil
	}
	switch f.Action {
	case ActionReply:
		return f.reply()
	case ActionDrop:
		_ = conn.Close()
		return errDropped
	}
	if f.hang(ctx); ctx.Err() != nil {
		return errClosing
	}
	return nil
}

var errDropped = &smtp.SMTPError{Code: 421, EnhancedCode: smtp.EnhancedCode{4, 4, 2}, Message: "connection dropped"}

func (f Fault) reply() *smtp.SMTPError {
	code := smtp.EnhancedCode{f.Code / 100, 0, 0}
	for i, digits := range strings.SplitN(f.Enhanced, ".", 3) {
		if n, err := strconv.Atoi(digits); err == nil {
			code[i] = n
		}
	}
	return &smtp.SMTPError{Code: f.Code, EnhancedCode: code, Message: "injected fault"}
}

func (f Fault) hang(ctx context.Context) {
	wait := time.Minute
	if f.HangMS > 0 {
		wait = time.Duration(f.HangMS) * time.Millisecond
	}
	select {
	case <-ctx.Done():
	case <-time.After(wait):
	}
}

// A faultyListener applies the faults of StageData, for which the SMTP library
// asks nobody: its connections look for the go-ahead among what they write.
type faultyListener struct {
	net.Listener
	ctx    context.Context
	faults *faults
}

// Accept implements [net.Listener].
func (l faultyListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &faultyConn{c, l.ctx, l.faults}, nil
}

type faultyConn struct {
	net.Conn
	ctx    context.Context
	faults *faults
}

// Write implements [net.Conn]. A refused DATA ends the connection, as the
// library would take the next command for the message.
func (c *faultyConn) Write(p []byte) (int, error) {
	if !bytes.HasPrefix(p, []byte("354 ")) {
		return c.Conn.Write(p)
	}
	if err := c.faults.strike(c.ctx, StageData, c.Conn); err != nil {
		if e, ok := errors.AsType[*smtp.SMTPError](err); ok {
			_, _ = fmt.Fprintf(c.Conn, "%d %d.%d.%d %s\r\n", e.Code, e.EnhancedCode[0], e.EnhancedCode[1], e.EnhancedCode[2], e.Message)
		}
		_ = c.Conn.Close()
		return 0, err
	}
	return c.Conn.Write(p)
}
