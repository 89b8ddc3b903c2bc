#!/usr/bin/env bash
# Starts a MySQL server in Docker with the settings and the user that cdc-producer and cdc-consumer need.
set -euo pipefail

readonly image=cdc-mysql
readonly user=fluvio
readonly password='fluvio4cdc!'
readonly wait_seconds=180

usage() {
  cat <<EOF
usage: install.sh -n NAME -d DIR -p PORT

  -n NAME  the container's name, e.g. mysql-producer
  -d DIR   the folder for the server's data; created when missing, used again when it holds a server's data
  -p PORT  the port on this machine, e.g. 3080 for the leader and 3090 for the follower; also the server's server_id

The server listens on 127.0.0.1:PORT. Programs connect as '$user' (cdc/sandbox/grants.sql); root's password is
\$MYSQL_ROOT_PASSWORD, by default 'root'.
EOF
}

fail() {
  echo "install.sh: $*" >&2
  exit 2
}

step() {
  echo "✅ $*"
}

read_options() {
  name='' dir='' port=''
  while getopts ':n:d:p:h' option; do
    case "$option" in
      n) name=$OPTARG ;;
      d) dir=$OPTARG ;;
      p) port=$OPTARG ;;
      h) usage && exit 0 ;;
      :) fail "-$OPTARG needs a value; see install.sh -h" ;;
      *) fail "unknown option -$OPTARG; see install.sh -h" ;;
    esac
  done
  shift $((OPTIND - 1))
  [[ $# -eq 0 ]] || fail "unknown argument '$1'; see install.sh -h"
  [[ -n $name ]] || fail "-n NAME is missing; see install.sh -h"
  [[ -n $dir ]] || fail "-d DIR is missing; see install.sh -h"
  [[ -n $port ]] || fail "-p PORT is missing; see install.sh -h"
  [[ $name =~ ^[a-zA-Z0-9][a-zA-Z0-9_.-]+$ ]] || fail "'$name' cannot be a container's name: use letters, digits, - _ ."
  [[ $port =~ ^[1-9][0-9]{0,4}$ && $port -le 65535 ]] || fail "'$port' is not a port: use a number from 1 to 65535"
}

check_docker() {
  command -v docker >/dev/null || fail "there is no docker on PATH: install Docker, or use cdc-sandbox, which does not need it"
  docker info >/dev/null 2>&1 || fail "the Docker engine does not answer: start it, and check that you may use it"
  step "Docker answers"
}

check_free() {
  if docker container inspect "$name" >/dev/null 2>&1; then
    fail "a container '$name' exists already: docker start $name, or docker rm -f $name, or choose another name"
  fi
  # bash itself opens the connection: no other tool is needed
  if (exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
    fail "port $port is in use: choose another with -p, or stop the program that listens there"
  fi
  step "the name $name and port $port are free"
}

make_dir() {
  mkdir -p -- "$dir" 2>/dev/null || fail "cannot make the folder $dir"
  # Without symbolic links: the same folder has the same name for every container.
  dir=$(CDPATH='' cd -- "$dir" 2>/dev/null && pwd -P && ls >/dev/null 2>&1) || fail "cannot read the folder $dir"
  # The image gives every file in the folder to its own user, before it looks at them.
  if [[ ! -d $dir/mysql && -n $(ls -A -- "$dir") ]]; then
    fail "the folder $dir holds other files than a server's data: choose an empty one, or one of before"
  fi
  local holder
  holder=$(docker ps --filter "volume=$dir" --format '{{.Names}}')
  # Two servers on the same data: the second would wait for the first one's locks, and then end.
  [[ -z $holder ]] || fail "the folder $dir is in use by the container '$holder': choose another with -d, or docker stop it"
  step "data folder $dir"
}

build_image() {
  local top
  top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
  docker build --quiet --file "$top/docker/Dockerfile" --tag "$image" "$top" >/dev/null ||
    fail "the image could not be built; see Docker's message above"
  step "image $image"
}

start_server() {
  local id
  id=$(docker create --name "$name" --publish "127.0.0.1:$port:3306" --volume "$dir:/var/lib/mysql" \
    --env "MYSQL_ROOT_PASSWORD=${MYSQL_ROOT_PASSWORD:-root}" "$image" "--server-id=$port") ||
    fail "the container could not be made; see Docker's message above"
  if ! docker start "$id" >/dev/null; then
    docker rm --volumes "$id" >/dev/null || true
    fail "the container could not be started; see Docker's message above"
  fi
  step "container $name"
}

answers() {
  # Over TCP: while the image prepares its data, the server answers on the socket only.
  docker exec --env "MYSQL_PWD=$password" "$name" mysql -h127.0.0.1 -u"$user" -e 'SELECT 1' >/dev/null 2>&1
}

runs() {
  [[ $(docker container inspect --format '{{.State.Running}}' "$name" 2>/dev/null) == true ]]
}

wait_until_it_answers() {
  local deadline=$((SECONDS + wait_seconds))
  until answers; do
    runs || fail "the server ended; see docker logs $name"
    ((SECONDS < deadline)) || fail "no answer within $wait_seconds s; see docker logs $name"
    sleep 1
  done
  step "MySQL answers on 127.0.0.1:$port as $user (password $password), server_id $port"
}

read_options "$@"
check_docker
check_free
make_dir
build_image
start_server
wait_until_it_answers
echo "Remove it again: docker rm -f $name (its data stay in $dir)"
