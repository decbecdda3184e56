package failure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"syscall"
	"testing"
	"time"
)

// The errors come from real sockets: their types differ from handwritten ones.
func TestNetworkClassOfRealErrors(t *testing.T) {
	t.Parallel()
	past, short := time.Now().Add(-time.Second), 20*time.Millisecond
	for name, tt := range map[string]struct {
		provoke func(t *testing.T) error
		want    Class
	}{
		"dial refused":                         {dial(net.Dialer{}, time.Time{}, closedPort), NetworkUnreachable},
		"dial timeout":                         {dial(net.Dialer{Timeout: time.Nanosecond}, time.Time{}, closedPort), NetworkTimeout},
		"name that does not exist":             {dial(net.Dialer{}, time.Time{}, missing), NetworkUnreachable},
		"read past its deadline":               {dial(net.Dialer{}, past, silent), NetworkTimeout},
		"connection reset":                     {dial(net.Dialer{}, time.Time{}, reset), NetworkUnreachable},
		"HTTP to a closed port":                {request(0, 0, closedPort), NetworkUnreachable},
		"HTTP past the client's timeout":       {request(short, 0, silent), NetworkTimeout},
		"HTTP past the context's deadline":     {request(0, short, silent), NetworkTimeout},
		"HTTP server closes without an answer": {request(0, 0, answering("")), NetworkUnreachable},
		"HTTP server closes within its header": {request(0, 0, answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n")), NetworkUnreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := tt.provoke(t)
			if err == nil {
				t.Fatal("no error was provoked")
			}
			got, ok := NetworkClass(fmt.Errorf("call upstream: %w", err))
			if !ok || got != tt.want {
				t.Errorf("%v (%T) is %q, want %s", err, err, got, tt.want)
			}
			if got := ClassOf(err); got != tt.want || !got.Retryable() {
				t.Errorf("ClassOf gives %s, want %s, retryable", got, tt.want)
			}
		})
	}
}

func TestNetworkClassOfMadeErrors(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		err  error
		want Class
	}{
		"DNS timeout":                          {&net.DNSError{Err: "timeout", Name: "api.test", IsTimeout: true}, NetworkUnreachable},
		"bare reset":                           {syscall.ECONNRESET, NetworkUnreachable},
		"broken pipe":                          {syscall.EPIPE, NetworkUnreachable},
		"deadline of an operation":             {os.ErrDeadlineExceeded, NetworkTimeout},
		"bare connection timed out":            {syscall.ETIMEDOUT, NetworkTimeout},
		"canceled is not transient":            {context.Canceled, ""},
		"end of a file is not a network error": {io.EOF, ""},
		"a missing file":                       {&os.PathError{Op: "open", Path: "x", Err: os.ErrNotExist}, ""},
		"any other":                            {errors.New("odd"), ""},
		"nil":                                  {nil, ""},
	} {
		got, ok := NetworkClass(tt.err)
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s: class is %q (%t), want %q", name, got, ok, tt.want)
		}
	}
}

// A wrong scheme or certificate is a mistake in the configuration, not an outage.
func TestNetworkClassLeavesMistakesAlone(t *testing.T) {
	t.Parallel()
	unknownScheme := get(t.Context(), http.DefaultClient, "smtp://localhost")
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it logs the failed handshake
	server.StartTLS()
	t.Cleanup(server.Close)
	unknownAuthority := get(t.Context(), http.DefaultClient, server.URL)
	for name, err := range map[string]error{"scheme": unknownScheme, "certificate": unknownAuthority} {
		if err == nil {
			t.Fatalf("%s: no error was provoked", name)
		}
		if c, ok := NetworkClass(err); ok {
			t.Errorf("%s: %v is %s, want no network class", name, err, c)
		}
	}
}

// listen accepts connections on loopback and hands each to serve.
func listen(t *testing.T, serve func(net.Conn)) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			serve(conn)
		}
	}()
	return l.Addr().String()
}

func closedPort(*testing.T) string { return "127.0.0.1:1" }

// dial connects, and reads with an expired deadline if that succeeds.
func dial(d net.Dialer, deadline time.Time, address func(*testing.T) string) func(*testing.T) error {
	return func(t *testing.T) error {
		t.Helper()
		conn, err := d.DialContext(t.Context(), "tcp", address(t))
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		if err := conn.SetReadDeadline(deadline); err != nil {
			t.Fatal(err)
		}
		_, err = conn.Read(make([]byte, 1))
		return err
	}
}

// request makes a request within the timeouts, if they are set.
func request(client, ctx time.Duration, address func(*testing.T) string) func(*testing.T) error {
	return func(t *testing.T) error {
		t.Helper()
		within := t.Context()
		if ctx > 0 {
			limited, cancel := context.WithTimeout(within, ctx)
			defer cancel()
			within = limited
		}
		return get(within, &http.Client{Timeout: client, Transport: &http.Transport{DisableKeepAlives: true}}, "http://"+address(t))
	}
}

// get makes one request and discards the body.
func get(ctx context.Context, client *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// missing is a name that is refused without a query: it has a label of 64 letters.
func missing(*testing.T) string { return fmt.Sprintf("%064d.invalid:25", 0) }

// silent accepts connections and does not answer before the test ends.
func silent(t *testing.T) string {
	t.Helper()
	return listen(t, func(c net.Conn) { t.Cleanup(func() { _ = c.Close() }) })
}

func reset(t *testing.T) string {
	t.Helper()
	return listen(t, func(c net.Conn) {
		_ = c.(*net.TCPConn).SetLinger(0) // Close sends RST
		_ = c.Close()
	})
}

// answering is a server that writes answer and closes the connection.
func answering(answer string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		return listen(t, func(c net.Conn) {
			_, _ = c.Read(make([]byte, 4096))
			_, _ = io.WriteString(c, answer)
			_ = c.Close()
		})
	}
}
