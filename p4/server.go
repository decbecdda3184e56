package p4

import (
	"context"
	"fmt"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
)

// ServerInfo is what a server says of itself.
type ServerInfo struct {
	// ServerID is the server's id; empty if its administrator gave it none.
	ServerID string
	// Version is the server's version line, such as P4D/LINUX26X86_64/2023.2/2535420.
	Version string
	// CaseHandling is sensitive, insensitive or hybrid.
	CaseHandling string
	// Unicode is set if the server is in unicode mode.
	Unicode bool
}

// foldsCase reports whether the server takes upper and lower case letters of
// paths and user names for the same.
func (i ServerInfo) foldsCase() bool { return i.CaseHandling != "sensitive" }

// A server is one server as it is known once it has been asked about itself.
type server struct {
	runner
	info ServerInfo
}

// connect asks a server about itself and settles the character set. Servers in
// unicode mode refuse clients without one, so the question may be put twice.
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
		return nil, fmt.Errorf("ask the p4 server about itself: %w", err)
	}
	if charset == "" && info.Unicode {
		r.charset = "utf8"
	}
	return &server{r, info}, nil
}

// askInfo runs p4 info -s, which needs no look-up on the server.
func (r runner) askInfo(ctx context.Context) (info ServerInfo, wantsUnicode bool, err error) {
	err = r.run(ctx, command{name: "info", flags: []string{"-s"}}, func(rec record) error {
		wantsUnicode = wantsUnicode || strings.Contains(rec.fields["data"], "permits only unicode enabled clients")
		if rec.fields["caseHandling"] != "" {
			info = ServerInfo{
				ServerID:     rec.fields["ServerID"],
				Version:      rec.fields["serverVersion"],
				CaseHandling: rec.fields["caseHandling"],
				Unicode:      rec.fields["unicode"] == "enabled",
			}
		}
		return rec.err()
	})
	if err == nil && info.CaseHandling == "" {
		// Without it no path can be compared with the allow-list.
		err = failure.Errorf(failure.UpstreamInternal, "p4 info did not say how the server handles case")
	}
	return info, wantsUnicode, err
}

// stats runs c and returns its stat records. Anything else that is no failure
// is passed over: triggers and brokers put messages of their own into any output.
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

// fold makes the form under which the server compares paths and user names.
func (s *server) fold(name string) string {
	if s.info.foldsCase() {
		return foldASCII(name)
	}
	return name
}
