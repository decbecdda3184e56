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
	tests := map[string]struct {
		provoke func(t *testing.T) error
		want    Class
	}{
		"dial refused":                         {dialRefused, NetworkUnreachable},
		"dial timeout":                         {dialTimeout, NetworkTimeout},
		"name that does not exist":             {lookupMissing, NetworkUnreachable},
		"read past its deadline":               {readDeadline, NetworkTimeout},
		"connection reset":                     {connectionReset, NetworkUnreachable},
		"HTTP to a closed port":                {httpRefused, NetworkUnreachable},
		"HTTP past the client's timeout":       {httpTimeout, NetworkTimeout},
		"HTTP past the context's deadline":     {httpDeadline, NetworkTimeout},
		"HTTP server closes without an answer": {httpHangUp, NetworkUnreachable},
		"HTTP server closes within its header": {httpCutShort, NetworkUnreachable},
	}
	for name, tt := range tests {
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
	tests := map[string]struct {
		err  error
		want Class
	}{
		"DNS timeout":                       {&net.DNSError{Err: "timeout", Name: "api.test", IsTimeout: true}, NetworkUnreachable},
		"bare reset":                        {syscall.ECONNRESET, NetworkUnreachable},
		"broken pipe":                       {syscall.EPIPE, NetworkUnreachable},
		"deadline of an operation":          {os.ErrDeadlineExceeded, NetworkTimeout},
		"bare connection timed out":         {syscall.ETIMEDOUT, NetworkTimeout},
		"canceled is not transient":         {context.Canceled, ""},
		"end of a file is no network error": {io.EOF, ""},
		"a missing file":                    {&os.PathError{Op: "open", Path: "x", Err: os.ErrNotExist}, ""},
		"any other":                         {errors.New("odd"), ""},
		"nil":                               {nil, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := NetworkClass(tt.err)
			if got != tt.want || ok != (tt.want != "") {
				t.Errorf("class is %q (%t), want %q", got, ok, tt.want)
			}
		})
	}
}

// A wrong scheme or certificate is a mistake in the configuration, not an outage.
func TestNetworkClassLeavesMistakesAlone(t *testing.T) {
	t.Parallel()
	_, unknownScheme := get(t, http.DefaultClient, "smtp://localhost")
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // it logs the failed handshake
	server.StartTLS()
	t.Cleanup(server.Close)
	_, unknownAuthority := get(t, http.DefaultClient, server.URL)
	for name, err := range map[string]error{"scheme": unknownScheme, "certificate": unknownAuthority} {
		if err == nil {
			t.Fatalf("%s: no error was provoked", name)
		}
		if c, ok := NetworkClass(err); ok {
			t.Errorf("%s: %v is %s, want no network class", name, err, c)
		}
	}
}

// get makes one request and discards the body.
func get(t *testing.T, client *http.Client, url string) (int, error) {
	t.Helper()
	return getWithin(t.Context(), client, url)
}

func getWithin(ctx context.Context, client *http.Client, url string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return 0, err
	}
	return response.StatusCode, response.Body.Close()
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

func closedPort(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func dial(t *testing.T, d net.Dialer, address string) (net.Conn, error) {
	t.Helper()
	conn, err := d.DialContext(t.Context(), "tcp", address)
	if err == nil {
		t.Cleanup(func() { _ = conn.Close() })
	}
	return conn, err
}

func dialRefused(t *testing.T) error {
	t.Helper()
	_, err := dial(t, net.Dialer{}, closedPort(t))
	return err
}

func dialTimeout(t *testing.T) error {
	t.Helper()
	_, err := dial(t, net.Dialer{Timeout: time.Nanosecond}, closedPort(t))
	return err
}

func lookupMissing(t *testing.T) error {
	t.Helper()
	// A label of 64 letters is refused without a query.
	_, err := dial(t, net.Dialer{}, fmt.Sprintf("%064d.invalid:25", 0))
	return err
}

func readDeadline(t *testing.T) error {
	t.Helper()
	conn, err := dial(t, net.Dialer{}, listen(t, func(net.Conn) {}))
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
		t.Fatal(err)
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

func connectionReset(t *testing.T) error {
	t.Helper()
	conn, err := dial(t, net.Dialer{}, listen(t, func(c net.Conn) {
		_ = c.(*net.TCPConn).SetLinger(0) // Close sends RST
		_ = c.Close()
	}))
	if err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

func httpRefused(t *testing.T) error {
	t.Helper()
	_, err := get(t, http.DefaultClient, "http://"+closedPort(t))
	return err
}

// silentServer accepts requests and does not respond before the test ends.
func silentServer(t *testing.T) string {
	t.Helper()
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-ended:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { close(ended); server.Close() })
	return server.URL
}

func httpTimeout(t *testing.T) error {
	t.Helper()
	_, err := get(t, &http.Client{Timeout: 20 * time.Millisecond}, silentServer(t))
	return err
}

func httpDeadline(t *testing.T) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err := getWithin(ctx, http.DefaultClient, silentServer(t))
	return err
}

func httpHangUp(t *testing.T) error {
	t.Helper()
	return httpAnswer(t, "")
}

func httpCutShort(t *testing.T) error {
	t.Helper()
	return httpAnswer(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n")
}

// httpAnswer makes a request to a server that writes answer and closes the connection.
func httpAnswer(t *testing.T, answer string) error {
	t.Helper()
	address := listen(t, func(c net.Conn) {
		_, _ = c.Read(make([]byte, 4096))
		_, _ = io.WriteString(c, answer)
		_ = c.Close()
	})
	_, err := get(t, &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, "http://"+address)
	return err
}
