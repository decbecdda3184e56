package p4

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A description is a changelist as p4 describes it. In the embedded Change,
// files and recipients are still missing.
type description struct {
	review.Change
	user  string // as the server spells it
	files []*file
}

// A file is one file of a changelist on its way to a [review.File].
type file struct {
	review.File
	path     string // as the server spells it, %40 for @
	fileType fileType
	source   string // path of the file it was moved, branched or integrated from
	base     string // revision it is compared with, path#rev; empty for none
	// merged are the revisions that were integrated into the one before, path#rev.
	merged []string
	// shelf is the changelist the file is shelved in, 0 for one that was submitted.
	// Its Revision is then the one that it is based on, 0 if there is none.
	shelf review.Changelist
}

// spec names the revision of the file that the changelist made.
func (f *file) spec() string {
	if f.shelf > 0 {
		return f.path + "@=" + f.shelf.String()
	}
	return revision(f.path, f.Revision)
}

// previous is the number of the revision before the one that the changelist made,
// 0 if there is none.
func (f *file) previous() int {
	if f.shelf > 0 {
		return f.Revision
	}
	return f.Revision - 1
}

func revision(path string, rev int) string { return path + "#" + strconv.Itoa(rev) }

// pathOf is the path of path#rev or path@=change: p4 writes a # of a name as %23
// and an @ as %40.
func pathOf(spec string) string {
	if i := strings.IndexAny(spec, "#@"); i >= 0 {
		return spec[:i]
	}
	return spec
}

// describe reads the changelist's metadata. Not with -s: tagged output has no
// diffs anyway, and -s drops the sources of moves.
func (s *server) describe(ctx context.Context, number review.Changelist, shelved bool) (description, error) {
	c := command{name: "describe", operands: []string{number.String()}}
	if shelved {
		c.flags = []string{"-S"}
	}
	records, err := s.stats(ctx, c)
	if failure.ClassOf(err) == failure.NotFound {
		return description{}, s.whyUnknown(ctx, number, err)
	}
	if err != nil {
		return description{}, err
	}
	for _, rec := range records {
		if rec.fields["change"] == number.String() {
			return parseDescription(number, rec.fields, shelved)
		}
	}
	return description{}, failure.Errorf(failure.UpstreamInternal, "p4 describe ended well but did not describe the changelist")
}

// whyUnknown tells a changelist that does not exist from one that has not
// arrived: triggers fire on the commit server, and replicas lag.
func (s *server) whyUnknown(ctx context.Context, number review.Changelist, unknown error) error {
	records, err := s.stats(ctx, command{name: "changes", flags: []string{"-m", "1"}})
	if err != nil {
		return err
	}
	newest := int64(0)
	for _, rec := range records {
		n, _ := strconv.ParseInt(rec.fields["change"], 10, 64)
		newest = max(newest, n)
	}
	if newest < int64(number) {
		behind := failure.Errorf(failure.ReplicaBehind, "the server has no changelist newer than %d: it lags, or the number does not exist", newest)
		behind.RetryAfter = arrival
		return behind
	}
	return unknown
}

// arrival is how long a replica gets, after each attempt, for a changelist that it
// lacks: attempts that follow each other in a second or two would all find it behind.
const arrival = 15 * time.Second

// parseDescription reads what p4 describe says of a changelist.
func parseDescription(number review.Changelist, fields map[string]string, shelved bool) (description, error) {
	if !shelved && fields["status"] != "submitted" {
		return description{}, failure.Errorf(failure.InputInvalid, "the changelist is pending or shelved: starter shelve-commit reviews a shelf")
	}
	d := description{user: fields["user"], Change: review.Change{Number: number, Shelved: shelved}}
	old, _ := strconv.ParseInt(fields["oldChange"], 10, 64) // 0 if it kept its number
	d.OldNumber = review.Changelist(old)
	d.User, _ = legacyToUTF8(fields["user"])
	d.Client, _ = legacyToUTF8(fields["client"])
	d.Description, _ = legacyToUTF8(fields["desc"])
	seconds, err := strconv.ParseInt(fields["time"], 10, 64)
	if err != nil {
		return description{}, failure.Errorf(failure.UpstreamInternal, "p4 describe gave no time of submission")
	}
	d.Time = time.Unix(seconds, 0).UTC()
	for i := range numbered(fields, "job") {
		d.Jobs = append(d.Jobs, fields["job"+strconv.Itoa(i)])
	}
	err = d.readFiles(fields)
	return d, err
}

// readFiles reads the files of a description, and says why there are none.
func (d *description) readFiles(fields map[string]string) error {
	for i := range numbered(fields, "depotFile") {
		f, err := parseFile(fields, strconv.Itoa(i), d.Shelved)
		if err != nil {
			return failure.Errorf(failure.UpstreamInternal, "read file %d of p4 describe: %w", i+1, err)
		}
		if d.Shelved {
			f.shelf = d.Number
		}
		d.files = append(d.files, f)
	}
	if len(d.files) > 0 {
		return nil
	}
	d.Empty = review.EmptyNoFiles
	if fields["changeType"] == "restricted" {
		d.Empty = review.EmptyRestricted
	}
	if d.Shelved {
		d.SkippedBy = review.SkipRuleGone
	}
	return nil
}

// numbered counts the fields name0, name1 and so on.
func numbered(fields map[string]string, name string) int {
	n := 0
	for {
		if _, ok := fields[name+strconv.Itoa(n)]; !ok {
			return n
		}
		n++
	}
}

// parseFile reads the fields that end in index. Deletes have no size and digest;
// what is shelved may be based on no revision.
func parseFile(fields map[string]string, index string, shelved bool) (*file, error) {
	rev, err := strconv.Atoi(fields["rev"+index])
	if (err != nil || rev < 1) && !shelved {
		return nil, errors.New("it has no revision number")
	}
	size, _ := strconv.ParseInt(fields["fileSize"+index], 10, 64) // 0 if it is not known
	f := &file{path: fields["depotFile"+index], fileType: parseType(fields["type"+index])}
	f.File = review.File{
		DepotPath: decodePath(f.path), Action: review.Action(fields["action"+index]), Type: fields["type"+index],
		Revision: rev, Size: max(size, 0), Digest: fields["digest"+index],
	}
	f.addSource(fields["fromFile"+index], fields["fromRev"+index])
	return f, nil
}

// pathEscapes are the characters p4 encodes in paths, in every output and argument.
var pathEscapes = strings.NewReplacer("%40", "@", "%23", "#", "%25", "%", "%2A", "*")

// decodePath makes a path as people write it. It is for show: p4 is always
// given the path as it spelled it itself.
func decodePath(path string) string {
	text, _ := legacyToUTF8(pathEscapes.Replace(path))
	return text
}
