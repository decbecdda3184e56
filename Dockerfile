# One image for every command of Criticizer: /worker, /criticizer and
# /criticizer-starter, static, without a base image.
#
#   docker build -t criticizer .
#
# The p4 command is distributed by Perforce only. Put it into DIRECTORY as
# usr/local/bin/p4, with its libraries, and
#
#   docker build -t criticizer --build-context p4=DIRECTORY .

FROM golang:1.26.8 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -o /out/ ./worker \
 && CGO_ENABLED=0 go build -trimpath -o /out/criticizer ./operator \
 && CGO_ENABLED=0 go build -trimpath -o /out/criticizer-starter ./starter \
 && mkdir -p /root-of-image/tmp /root-of-image/var/lib/criticizer/p4 /root-of-image/var/lib/criticizer/spool \
 && chmod 1777 /root-of-image/tmp \
 && chmod -R 0700 /root-of-image/var/lib/criticizer && chown -R 65532:65532 /root-of-image/var/lib/criticizer

# Replaced by --build-context p4=DIRECTORY.
FROM scratch AS p4

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /root-of-image /
COPY --from=build /out /
COPY --from=p4 / /
USER 65532:65532
ENV PATH=/:/usr/local/bin
# Tickets, server fingerprints and the spool: the only files that are written.
VOLUME /var/lib/criticizer
HEALTHCHECK --interval=10s --timeout=12s --start-period=30s CMD ["/worker", "--healthy"]
ENTRYPOINT ["/worker"]
