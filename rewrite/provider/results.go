package provider

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/llm/endpoint"
	"github.com/criticizer/criticizer/rewrite"
)

// maxLine bounds a line of a file; usual lines have a few kilobytes.
const maxLine = 4 << 20

// Results calls each for every line of an output or error file, in the file's order,
// until each returns an error. A line that is not JSON, has no item or exceeds 4 MiB has
// no JobID. It holds one line in memory. The error of a missing file has class
// [failure.NotFound].
func (r *Rewriter) Results(ctx context.Context, to rewrite.RoutingDecision, fileID string, each func(rewrite.Line) error) error {
	e, a, err := r.openBatches(to)
	if err != nil {
		return err
	}
	body, err := e.Download(ctx, "/files/"+url.PathEscape(fileID)+"/content")
	if err != nil {
		return err
	}
	defer func() { _ = body.Close() }()
	for raw, err := range linesOf(body) {
		if err == nil {
			err = each(a.result(raw))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// result reads one line of an output or error file: its ID first, whatever the rest looks like.
// A response counts more than an error.
func (a adapter) result(raw []byte) (line rewrite.Line) {
	entry := objectOf(raw)
	line.JobID = entry.text("custom_id")
	response := entry.object("response")
	status, body := response.number("status_code"), response.object("body")
	if _, named := response["status_code"]; !named && body != nil { // not every server names it
		status = http.StatusOK
	}
	switch {
	case line.JobID == "":
	case status == http.StatusOK && (body != nil || !entry.hasError()):
		line.Answer, line.Err = a.read(body)
	case status >= http.StatusBadRequest && body == nil:
		line.Err = endpoint.Refused(status, entry["error"])
	case status >= http.StatusBadRequest:
		line.Err = endpoint.Refused(status, response["body"])
	default:
		line.Err = unanswered(entry)
	}
	return line
}

// unanswered returns the error of an item that the provider did not execute.
func unanswered(entry object) error {
	switch code := entry.object("error").text("code"); code {
	case "batch_expired", "batch_cancelled":
		return failure.Errorf(failure.UpstreamUnavailable, "provider ended the batch before this request (%s)", code)
	case "request_timeout":
		return failure.Errorf(failure.NetworkTimeout, "request of the batch timed out at the provider (%s)", code)
	}
	if err := endpoint.Refused(http.StatusOK, entry["error"]); failure.ClassOf(err) != failure.UpstreamInternal {
		return err
	}
	return failure.Errorf(failure.UpstreamInternal, "provider did not execute a request of the batch")
}

// linesOf returns the lines of a file, which may be compressed, without line ends and byte
// order mark; empty lines are skipped, and a line over maxLine is nil.
func linesOf(file io.Reader) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		in := bufio.NewReaderSize(file, 64<<10)
		if magic, _ := in.Peek(2); string(magic) == "\x1f\x8b" {
			plain, err := gzip.NewReader(in)
			if err != nil {
				yield(nil, err)
				return
			}
			in = bufio.NewReaderSize(plain, 64<<10)
		}
		if mark, _ := in.Peek(3); string(mark) == "\ufeff" {
			_, _ = in.Discard(3)
		}
		for {
			line, err := readLine(in)
			if err != nil && !errors.Is(err, io.EOF) {
				yield(nil, err)
				return
			}
			if (line == nil || len(line) > 0) && !yield(line, nil) || err != nil {
				return
			}
		}
	}
}

// readLine reads a line without its end; nil if it is too long.
func readLine(in *bufio.Reader) (line []byte, err error) {
	line = []byte{}
	for {
		part, err := in.ReadSlice('\n')
		if line != nil {
			line = append(line, part...)
		}
		if len(line) > maxLine {
			line = nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimRight(line, "\r\n"), err
		}
	}
}
