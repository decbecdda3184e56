package p4

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/p4/internal/command"
)

// ServerInfo is a server's description of itself.
type ServerInfo struct {
	// Version is the server's version line, such as P4D/LINUX26X86_64/2023.2/2535420.
	Version      string
	CaseHandling string // sensitive, insensitive or hybrid; empty if it is not reported
	Services     string // such as standard, replica or edge-server; empty if it is not reported
	Unicode      bool   // the server is in unicode mode
	Broker       bool   // a broker passes the commands on
}

// Values of CaseHandling.
const (
	caseSensitive   = "sensitive"
	caseInsensitive = "insensitive"
)

// mayLag reports whether the server can be a replica, or a broker in front of one.
func (i ServerInfo) mayLag() bool {
	return i.Broker || i.Services != "standard" && i.Services != "commit-server"
}

// isReplica reports whether the server gets its files from another one.
func (i ServerInfo) isReplica() bool {
	return slices.ContainsFunc([]string{"replica", "edge", "standby", "build"}, func(kind string) bool { return strings.Contains(i.Services, kind) })
}

// Info returns the server's description of itself.
func (f *ChangeFetcher) Info(ctx context.Context) (ServerInfo, error) {
	s, err := f.connect(ctx)
	if err != nil {
		return ServerInfo{}, err
	}
	return s.info, nil
}

// A server is a server whose info is known.
type server struct {
	command.Runner
	info            ServerInfo
	charset         string // as in Config.CharsetFallback
	restrictedToAll bool
}

// connect asks a server for its info and determines the character set. A server in
// unicode mode refuses clients without one, so it may be asked twice. Nothing is kept: a
// standby may take over, or the server may be converted to unicode mode.
func (f *ChangeFetcher) connect(ctx context.Context) (*server, error) {
	r := f.runner
	r.Charset = "none"
	info, wantsUnicode, err := askInfo(ctx, r)
	if wantsUnicode {
		r.Charset = "utf8"
		info, _, err = askInfo(ctx, r)
	}
	if err != nil {
		return nil, fmt.Errorf("ask the p4 server for its info: %w", err)
	}
	if info.Unicode {
		r.Charset = "utf8"
	}
	r.Broker = info.Broker
	return &server{r, info, f.cfg.CharsetFallback, f.cfg.RestrictedTo == Everyone}, nil
}

// askInfo runs p4 info -s, which reads no table of the server. A server can hide all
// of it (dm.info.hide), even if the ticket has expired: the next command reports that.
func askInfo(ctx context.Context, r command.Runner) (info ServerInfo, wantsUnicode bool, err error) {
	broker, answered, said := false, false, ""
	err = r.Run(ctx, command.Cmd{Name: "info", Flags: []string{"-s"}}, func(rec command.Record) error {
		wantsUnicode = wantsUnicode || strings.Contains(rec.Fields["data"], "permits only unicode enabled clients")
		broker = broker || rec.Fields["brokerVersion"] != "" || rec.Fields["brokerAddress"] != ""
		if rec.Fields["caseHandling"] != "" {
			info = ServerInfo{
				Version:      rec.Fields["serverVersion"],
				CaseHandling: rec.Fields["caseHandling"],
				Services:     rec.Fields["serverServices"],
				Unicode:      rec.Fields["unicode"] == "enabled",
			}
		}
		if answered = answered || rec.Code == "stat"; rec.Code == "info" {
			said = rec.Fields["data"]
		}
		return rec.Err()
	})
	if err == nil && !answered && said != "" { // a broker that is closed answers each command with a text
		err = command.Record{Code: "error", Fields: map[string]string{"data": said, "severity": "3"}}.Err()
	}
	info.Broker = broker
	return info, wantsUnicode, err
}

// fold returns the form in which the server compares paths and user names.
func (s *server) fold(name string) string {
	if s.info.CaseHandling == caseInsensitive {
		return foldASCII(name)
	}
	return name
}
