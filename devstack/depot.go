package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/review"
)

// A depot is what is reviewed: a git repository or a recorded depot that p4sim
// serves, or a real Perforce server.
type depot struct {
	path     string // empty: a real server
	recorded bool
	port     string   // of a real server
	allowed  []string // what may be reviewed of a real server
	// id names everything kept for this depot, and the server in idempotency
	// keys: changelist 1 of one depot is not changelist 1 of another.
	id string
}

// openDepot returns the depot that the flags name, else the project's own clone.
func openDepot(ctx context.Context, opts options) (depot, error) {
	switch {
	case opts.repo != "" && opts.depot != "":
		return depot{}, errors.New("REPO and DEPOT exclude each other: name one")
	case opts.depot != "":
		return recordedDepot(opts.depot)
	case opts.repo != "":
		return gitDepot(ctx, opts.repo, "name another in REPO=")
	}
	return gitDepot(ctx, opts.root, "name a git repository to review in REPO=/path/to/it, or a recorded depot in DEPOT=")
}

func recordedDepot(dir string) (depot, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return depot{}, fmt.Errorf("find depot %s: %w", dir, err)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return depot{}, fmt.Errorf("depot %s does not exist: correct DEPOT=", path)
	case err != nil:
		return depot{}, fmt.Errorf("look at depot: %w", err)
	case !info.IsDir():
		return depot{}, fmt.Errorf("depot %s is not a directory: correct DEPOT=", path)
	}
	return depot{path: path, recorded: true, id: depotID(path)}, nil
}

// gitDepot returns the repository at dir, which must have a commit; the hint
// says what to do if it is none.
func gitDepot(ctx context.Context, dir, hint string) (depot, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return depot{}, fmt.Errorf("find repository %s: %w", dir, err)
	}
	cmd := exec.CommandContext(ctx, "git", "-C", path, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
	var complaint strings.Builder
	cmd.Stderr = &complaint
	if err := cmd.Run(); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return depot{}, errors.New("the git command is missing: install git")
		}
		why := strings.TrimSpace(complaint.String())
		if why == "" {
			why = "it has no commit"
		}
		return depot{}, fmt.Errorf("%s cannot be reviewed (%s): %s", path, why, hint)
	}
	return depot{path: path, id: depotID(path)}, nil
}

// realDepot returns the Perforce server at port.
func realDepot(port string, getenv func(string) string) (depot, error) {
	allowed := strings.FieldsFunc(getenv("CRITICIZER_P4_ALLOWED_PATHS"), func(r rune) bool { return r == ',' || r == ' ' })
	switch {
	case len(allowed) == 0:
		return depot{}, errors.New("P4PORT is set: name what may be reviewed in CRITICIZER_P4_ALLOWED_PATHS=//depot/project/..., or unset it for a stand-in")
	case getenv("P4USER") == "":
		return depot{}, errors.New("P4PORT is set: name the account that reads changes in P4USER, or unset it for a stand-in")
	}
	if _, err := exec.LookPath("p4"); err != nil {
		return depot{}, errors.New("P4PORT is set and the p4 command is missing: install it, or unset P4PORT for a stand-in")
	}
	return depot{port: port, allowed: allowed, id: depotID(port)}, nil
}

var notInID = regexp.MustCompile(`[^a-z0-9]+`)

// depotID makes a name of a path: readable, and different for every path.
func depotID(path string) string {
	sum := sha256.Sum256([]byte(path))
	base := strings.Trim(notInID.ReplaceAllString(strings.ToLower(filepath.Base(path)), "-"), "-")
	return strings.Trim(base[:min(len(base), 24)]+"-"+hex.EncodeToString(sum[:4]), "-")
}

// A submitted changelist, as p4 changes lists it.
type submitted struct {
	changelist review.Changelist
	depot      string // such as //depot
}

var (
	changeLine = regexp.MustCompile(`^\.\.\. change (\d+)$`)
	pathLine   = regexp.MustCompile(`^\.\.\. path (//[^/]+)/`)
)

// parseChanges reads the output of p4 -ztag changes. It returns the
// changelists in ascending order.
func parseChanges(text string) ([]submitted, error) {
	var list []submitted
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if m := changeLine.FindStringSubmatch(line); m != nil {
			cl, err := review.ParseChangelist(m[1])
			if err != nil {
				return nil, fmt.Errorf("read the list of changes: %w", err)
			}
			list = append(list, submitted{changelist: cl})
		}
		if m := pathLine.FindStringSubmatch(line); m != nil && len(list) > 0 {
			list[len(list)-1].depot = m[1]
		}
	}
	slices.SortFunc(list, func(a, b submitted) int { return int(a.changelist - b.changelist) })
	return list, nil
}

// spread picks n of list, evenly, with the first and the last.
func spread(list []submitted, n int) []submitted {
	if n >= len(list) {
		return list
	}
	if n == 1 {
		return list[len(list)-1:]
	}
	picked := make([]submitted, n)
	for i := range n {
		picked[i] = list[i*(len(list)-1)/(n-1)]
	}
	return picked
}
