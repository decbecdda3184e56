package p4

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// ServerInfo is a server's description of itself.
type ServerInfo struct {
	// ServerID is empty if the server's administrator did not set one.
	ServerID string
	// Version is the server's version line, such as P4D/LINUX26X86_64/2023.2/2535420.
	Version string
	// CaseHandling is sensitive, insensitive or hybrid; empty if the server does not
	// report it.
	CaseHandling string
	// Services are what the server is, such as standard, replica or edge-server; empty
	// if it does not report that.
	Services string
	// Unicode is set if the server is in unicode mode.
	Unicode bool
	// Broker is set if a broker passes the commands on.
	Broker bool
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

// A server is a server whose info is known.
type server struct {
	runner
	info ServerInfo
}

// connect asks a server for its info and determines the character set. A server in
// unicode mode refuses clients without one, so it may be asked twice.
func connect(ctx context.Context, r runner, charset string) (*server, error) {
	r.charset = charset
	if charset == "" {
		r.charset = "none"
	}
	info, wantsUnicode, err := r.askInfo(ctx)
	if wantsUnicode && charset == "" {
		r.charset = "utf8"
		info, _, err = r.askInfo(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("ask the p4 server for its info: %w", err)
	}
	if charset == "" && info.Unicode {
		r.charset = "utf8"
	}
	r.broker = info.Broker
	return &server{r, info}, nil
}

// askInfo runs p4 info -s, which reads no table of the server. A server can hide all
// of it (dm.info.hide), also if the ticket has expired: the next command reports that.
func (r runner) askInfo(ctx context.Context) (info ServerInfo, wantsUnicode bool, err error) {
	broker := false
	err = r.run(ctx, command{name: "info", flags: []string{"-s"}}, func(rec record) error {
		wantsUnicode = wantsUnicode || strings.Contains(rec.fields["data"], "permits only unicode enabled clients")
		if rec.fields["caseHandling"] != "" {
			info = ServerInfo{
				ServerID:     rec.fields["ServerID"],
				Version:      rec.fields["serverVersion"],
				CaseHandling: rec.fields["caseHandling"],
				Services:     rec.fields["serverServices"],
				Unicode:      rec.fields["unicode"] == "enabled",
			}
		}
		if rec.fields["brokerVersion"] != "" || rec.fields["brokerAddress"] != "" {
			broker = true
		}
		return rec.err()
	})
	info.Broker = broker
	return info, wantsUnicode, err
}

// stats runs c and returns its stat records. Other records that are not failures
// are ignored: triggers and brokers add messages to the output of any command.
func (r runner) stats(ctx context.Context, c command) ([]record, error) {
	var stats []record
	err := r.run(ctx, c, func(rec record) error {
		if rec.code == "stat" {
			stats = append(stats, rec)
		}
		return rec.err()
	})
	return stats, err
}

// fold returns the form in which the server compares paths and user names.
func (s *server) fold(name string) string {
	if s.info.CaseHandling == caseInsensitive {
		return foldASCII(name)
	}
	return name
}
