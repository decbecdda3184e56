package llmsim

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// maxFileBytes is the largest file it takes.
const maxFileBytes = 512 << 20

// A depot holds what is kept at the endpoint between calls.
type depot struct {
	mu      *sync.Mutex // guards the rest
	files   map[string]*upload
	batches []*batch // oldest first
	made    int      // so far, of either
}

// An upload is a file at the endpoint.
type upload struct {
	id, name, purpose string
	created           int64
	content           []byte
}

func newDepot() depot { return depot{mu: new(sync.Mutex), files: map[string]*upload{}} }

// store keeps content as a new file. The depot is locked.
func (d *depot) store(name, purpose string, content []byte) *upload {
	d.made++
	f := &upload{id: fmt.Sprintf("file-%06d", d.made), name: name, purpose: purpose, created: time.Now().Unix(), content: content}
	d.files[f.id] = f
	return f
}

func (f *upload) json() map[string]any {
	return map[string]any{
		"id": f.id, "object": "file", "bytes": len(f.content), "created_at": f.created,
		"filename": f.name, "purpose": f.purpose, "status": "processed",
	}
}

// on serves one operation with files or batches: faults and keys first.
func (s *Server) on(op Operation, serve func(r *http.Request) reply) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		f := s.nextFault(op, query{})
		out := s.faultReply(f.Kind)
		if f.Kind == Forgotten {
			out = notFound()
		}
		if !out.reached() {
			out = s.serve(r, serve)
		}
		switch f.Kind {
		case LostAnswer:
			out = reply{drop: true}
		case CutBody:
			out.body = out.body[:len(out.body)/2]
		}
		if f.RetryAfter != "" && out.header != nil {
			out.header.Set("Retry-After", f.RetryAfter)
		}
		send(w, r, out)
	}
}

func (s *Server) serve(r *http.Request, serve func(r *http.Request) reply) reply {
	if !s.authorized(r) {
		return apiErrors[InvalidKey].reply()
	}
	return serve(r)
}

func notFound() reply {
	return apiError{http.StatusNotFound, "invalid_request_error", "", "No such object."}.reply()
}

// upload reads a multipart form with the fields purpose and file.
func (s *Server) postFile(r *http.Request) reply {
	form, err := r.MultipartReader()
	if err != nil {
		return apiErrors[BadRequest].reply()
	}
	var purpose, name string
	var content []byte
	for {
		part, err := form.NextPart()
		if err != nil {
			break
		}
		data, err := io.ReadAll(io.LimitReader(part, maxFileBytes+1))
		switch {
		case err != nil:
			return apiErrors[BadRequest].reply()
		case len(data) > maxFileBytes:
			return apiErrors[TooLarge].reply()
		case part.FormName() == "purpose":
			purpose = string(data)
		case part.FormName() == "file":
			name, content = part.FileName(), data
		}
	}
	if purpose != "batch" || name == "" {
		return apiErrors[BadRequest].reply()
	}
	s.depot.mu.Lock()
	defer s.depot.mu.Unlock()
	return jsonReply(http.StatusOK, s.depot.store(name, purpose, content).json())
}

func (s *Server) content(r *http.Request) reply {
	s.depot.mu.Lock()
	defer s.depot.mu.Unlock()
	f := s.depot.files[r.PathValue("id")]
	if f == nil {
		return notFound()
	}
	return reply{status: http.StatusOK, header: http.Header{"Content-Type": {"application/octet-stream"}}, body: slices.Clone(f.content)}
}

func (s *Server) deleteFile(r *http.Request) reply {
	s.depot.mu.Lock()
	defer s.depot.mu.Unlock()
	id := r.PathValue("id")
	if s.depot.files[id] == nil {
		return notFound()
	}
	delete(s.depot.files, id)
	return jsonReply(http.StatusOK, map[string]any{"id": id, "object": "file", "deleted": true})
}
