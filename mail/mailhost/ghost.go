package mailhost

import (
	"io"
	"log"
	"net"

	"github.com/emersion/go-smtp"
)

// A ghost is an LMTP server at which every mailbox is gone: what Postfix has
// accepted for one of them comes back as a bounce.
type ghost struct {
	*smtp.Server
	port int
}

func haunt() (*ghost, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := smtp.NewServer(nobody{})
	server.LMTP, server.Domain, server.ErrorLog = true, "ghost."+Domain, log.New(io.Discard, "", 0)
	go func() { _ = server.Serve(l) }()
	return &ghost{server, l.Addr().(*net.TCPAddr).Port}, nil
}

type nobody struct{}

func (nobody) NewSession(*smtp.Conn) (smtp.Session, error) { return nobody{}, nil }
func (nobody) Mail(string, *smtp.MailOptions) error        { return nil }
func (nobody) Data(io.Reader) error                        { return nil }
func (nobody) Reset()                                      {}
func (nobody) Logout() error                               { return nil }

func (nobody) Rcpt(string, *smtp.RcptOptions) error {
	return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "mailbox gone"}
}
