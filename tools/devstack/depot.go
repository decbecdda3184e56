package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/criticizer/criticizer/internal/git"
)

// A depot is reviewed: the sample, another .txtar file or a git repository, which p4sim
// serves, or a real Perforce server.
type depot struct {
	path       string // empty: a real server
	port, user string
	allowed    []string // paths
	sample     bool     // the sample depot of this clone
	// id names the files of this depot, and the server in idempotency keys:
	// changelist 1 of one depot is not changelist 1 of another, and a review by one
	// model is none by another.
	id string
}

// openDepot returns the depot that the flags name, or the sample depot.
func openDepot(ctx context.Context, opts options) (depot, error) {
	switch {
	case opts.repo != "" && opts.depot != "":
		return depot{}, errors.New("REPO and DEPOT exclude each other: name one")
	case opts.depot != "":
		return fileDepot(opts)
	case opts.repo == "":
		return sampleDepot(opts)
	}
	path, err := filepath.Abs(opts.repo)
	if err != nil {
		return depot{}, fmt.Errorf("make path of the depot absolute: %w", err)
	}
	repository, err := git.Open(path)
	if err != nil {
		return depot{}, fmt.Errorf("%w: name another in REPO=", err)
	}
	if _, err = repository.Output(ctx, "rev-parse", "--verify", "HEAD^{commit}"); err != nil {
		err = fmt.Errorf("%s cannot be reviewed: %w: name another in REPO=", path, err)
	}
	return depot{path: path, id: opts.depotID(path)}, errors.Join(err, repository.Close())
}

// fileDepot returns the .txtar file that a flag names. Its id depends on its content:
// reviews of another content are not reviews of this one.
func fileDepot(opts options) (depot, error) {
	path, err := filepath.Abs(opts.depot)
	if err != nil {
		return depot{}, fmt.Errorf("make path of the depot absolute: %w", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return depot{}, fmt.Errorf("read the depot: %w: name a .txtar file in DEPOT=", err)
	}
	return depot{path: path, id: opts.depotID(path, text...)}, nil
}

// realDepot returns the Perforce server that P4PORT names.
func realDepot(_ context.Context, opts options) (depot, error) {
	port, user := os.Getenv("P4PORT"), os.Getenv("P4USER")
	allowed := strings.FieldsFunc(os.Getenv("CRITICIZER_P4_ALLOWED_PATHS"), func(r rune) bool { return r == ',' || r == ' ' })
	switch {
	case len(allowed) == 0:
		return depot{}, errors.New("P4PORT is set: name the allowed paths in CRITICIZER_P4_ALLOWED_PATHS=//depot/project/..., or unset it for a simulation")
	case user == "":
		return depot{}, errors.New("P4PORT is set: name the account that reads changes in P4USER, or unset it for a simulation")
	}
	if _, err := exec.LookPath("p4"); err != nil {
		return depot{}, errors.New("P4PORT is set and the p4 command is missing: install it, or unset P4PORT for a simulation")
	}
	return depot{port: port, user: user, allowed: allowed, id: opts.depotID(port)}, nil
}

var notInID = regexp.MustCompile(`[^a-z0-9]+`)

// depotID returns a readable name for the depot at path with the given content. It
// depends on the database and the model, because each has its own reviews.
func (o options) depotID(path string, content ...byte) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", []string{path, o.databaseURL, o.baseURL, o.model, string(content)}))
	base := strings.Trim(notInID.ReplaceAllString(strings.ToLower(filepath.Base(path)), "-"), "-")
	return strings.Trim(base[:min(len(base), 24)]+"-"+hex.EncodeToString(sum[:4]), "-")
}
