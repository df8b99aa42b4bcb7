# batch in a small image: docker build -t batch . && docker run --rm -v "$PWD:/data" batch plan job.json
FROM swift:6.2-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends libsqlite3-dev liblz4-dev zlib1g-dev libzstd-dev pkg-config sqlite3
WORKDIR /source
COPY . .
RUN Scripts/install --static --prefix /opt/batch

FROM debian:bookworm-slim
COPY --from=build /opt/batch/ /usr/local/
# Jobs and databases: the paths of a job lead from its folder.
WORKDIR /data
ENTRYPOINT ["batch"]
CMD ["--help"]
