//! The parser: from tokens to trees. Names are resolved as they are read, so every error knows its place.
//!
//!   comparison = sum ("<=" | ">=" | "==") sum
//!   sum        = product (("+" | "-") product)*
//!   product    = factor (("*" | "/") factor)*
//!   factor     = "-" factor | base ("^" "-"? (number | parameter))?
//!   base       = number unit? | "(" sum ")" | name | name "(" arguments ")"

use super::ast::{Comparison, Expr, Node, Operator, Span, TypeRef};
use super::dimension::Dimension;
use super::error::{ExpressionError, ExpressionErrorKind as Kind};
use super::functions::{Function, Reduction};
use super::lexer::{Token, tokens};
use super::vocabulary::{Atom, OWNED_BY, Subject, TYPE, Variable, Vocabulary};
use super::{DEPTH_MAX, LENGTH_MAX};

/// The subjects at hand where an expression stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scope {
    /// Whether one job is at hand.
    pub job: bool,
    /// Whether one worker type is at hand.
    pub worker_type: bool,
}

impl Scope {
    /// Neither a job nor a worker type: the place of an objective, or of a constraint on the whole cluster.
    pub const GLOBAL: Self = Self { job: false, worker_type: false };
    /// One job: the place of a `for_each_job` constraint.
    pub const JOB: Self = Self { job: true, worker_type: false };
    /// One worker type: the place of a `for_each_worker_type` constraint.
    pub const WORKER_TYPE: Self = Self { job: false, worker_type: true };
}

/// Reads one expression.
///
/// # Errors
/// Where the text is no expression, or a name is unknown or out of its place.
pub fn parse(text: &str, vocabulary: &Vocabulary, scope: Scope) -> Result<Expr, ExpressionError> {
    let mut parser = Parser::new(text, vocabulary, scope)?;
    let expression = parser.sum()?;
    parser.end()?;
    Ok(expression)
}

/// A comparison of two expressions.
#[derive(Clone, Debug)]
pub struct ComparedSides {
    /// The expression on the left.
    pub left: Expr,
    /// The sign between them.
    pub comparison: Comparison,
    /// The expression on the right.
    pub right: Expr,
}

/// Reads a comparison of two expressions.
///
/// # Errors
/// Where the text is no comparison of expressions, or a name is unknown or out of its place.
pub fn parse_comparison(
    text: &str,
    vocabulary: &Vocabulary,
    scope: Scope,
) -> Result<ComparedSides, ExpressionError> {
    let mut parser = Parser::new(text, vocabulary, scope)?;
    let left = parser.sum()?;
    let Token::Compare(comparison) = *parser.token() else {
        return Err(parser.unexpected("`<=`, `>=` or `==`"));
    };
    parser.position += 1;
    let right = parser.sum()?;
    parser.end()?;
    Ok(ComparedSides { left, comparison, right })
}

struct Parser<'a> {
    tokens: Vec<(Token, Span)>,
    position: usize,
    depth: usize,
    scope: Scope,
    vocabulary: &'a Vocabulary,
}

impl<'a> Parser<'a> {
    fn new(text: &str, vocabulary: &'a Vocabulary, scope: Scope) -> Result<Self, ExpressionError> {
        if text.len() > LENGTH_MAX {
            return Err(ExpressionError::new(Kind::TooLong(text.len()), Span { offset: 0, width: 1 }));
        }
        Ok(Self { tokens: tokens(text)?, position: 0, depth: 0, scope, vocabulary })
    }

    fn token(&self) -> &Token {
        &self.tokens[self.position].0
    }

    fn span(&self) -> Span {
        self.tokens[self.position].1
    }

    fn unexpected(&self, expected: &'static str) -> ExpressionError {
        ExpressionError::new(Kind::Token { expected, found: self.token().describe() }, self.span())
    }

    fn end(&self) -> Result<(), ExpressionError> {
        match self.token() {
            Token::End => Ok(()),
            _ => Err(self.unexpected("an operator or the end")),
        }
    }

    fn take(&mut self, symbol: char) -> bool {
        let found = *self.token() == Token::Symbol(symbol);
        self.position += usize::from(found);
        found
    }

    fn close(&mut self) -> Result<Span, ExpressionError> {
        let span = self.span();
        if self.take(')') { Ok(span) } else { Err(self.unexpected("an operator, `,` or `)`")) }
    }

    fn sum(&mut self) -> Result<Expr, ExpressionError> {
        self.chain(&[('+', Operator::Add), ('-', Operator::Subtract)], Self::product)
    }

    fn product(&mut self) -> Result<Expr, ExpressionError> {
        self.chain(&[('*', Operator::Multiply), ('/', Operator::Divide)], Self::factor)
    }

    fn chain(
        &mut self,
        operators: &[(char, Operator)],
        part: impl Fn(&mut Self) -> Result<Expr, ExpressionError>,
    ) -> Result<Expr, ExpressionError> {
        let mut left = part(self)?;
        while let Some((_, operator)) = operators.iter().find(|(symbol, _)| self.take(*symbol)) {
            let right = part(self)?;
            let span = left.span.to(right.span);
            left = Expr { node: Node::Binary(*operator, Box::new(left), Box::new(right)), span };
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<Expr, ExpressionError> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(ExpressionError::new(Kind::TooDeep, self.span()));
        }
        let start = self.span();
        let factor = if self.take('-') {
            let inner = self.factor()?;
            Expr { span: start.to(inner.span), node: Node::Negate(Box::new(inner)) }
        } else {
            let base = self.base()?;
            self.power(base)?
        };
        self.depth -= 1;
        Ok(factor)
    }

    /// Reads the base of a power: a number, a named quantity, a call, or a sum in parentheses.
    fn base(&mut self) -> Result<Expr, ExpressionError> {
        let start = self.span();
        match self.token().clone() {
            Token::Number(value) => {
                self.position += 1;
                let Token::Unit(dimension) = *self.token() else {
                    return Ok(Expr {
                        node: Node::Number { value, dimension: Dimension::NONE },
                        span: start,
                    });
                };
                let span = start.to(self.span());
                self.position += 1;
                Ok(Expr { node: Node::Number { value, dimension }, span })
            }
            Token::Symbol('(') => {
                self.position += 1;
                let inner = self.sum()?;
                Ok(Expr { span: start.to(self.close()?), ..inner })
            }
            Token::Name(name) => {
                self.position += 1;
                self.named(&name, start)
            }
            _ => Err(self.unexpected("a number, a name, `-` or `(`")),
        }
    }

    /// Reads an exponent, such as `^0.5`, behind a base; the base itself without one.
    fn power(&mut self, base: Expr) -> Result<Expr, ExpressionError> {
        if !self.take('^') {
            return Ok(base);
        }
        let negative = self.take('-');
        let size = match self.token() {
            Token::Number(size) => Some(*size),
            Token::Name(name) => {
                let plain = |(_, dimension): &(f64, Dimension)| dimension.is_none();
                self.vocabulary.parameter(name).filter(plain).map(|(value, _)| value)
            }
            _ => None,
        };
        let Some(size) = size else {
            return Err(self.unexpected("a number without a unit, the exponent"));
        };
        let (span, exponent) = (base.span.to(self.span()), if negative { -size } else { size });
        self.position += 1;
        Ok(Expr { node: Node::Power(Box::new(base), exponent), span })
    }

    fn named(&mut self, name: &str, start: Span) -> Result<Expr, ExpressionError> {
        if let Some(reduction) = Reduction::find(name) {
            return self.reduction(reduction, start);
        }
        if let Some(function) = Function::find(name) {
            return self.call(function, start);
        }
        if name == OWNED_BY {
            return self.owned_by(start);
        }
        if let Some((value, dimension)) = self.vocabulary.parameter(name) {
            let number = Node::Number { value: value.abs(), dimension };
            let number = Expr { node: number, span: start };
            let is_negative = value < 0.0;
            return Ok(if is_negative {
                Expr { node: Node::Negate(Box::new(number)), span: start }
            } else {
                number
            });
        }
        if name == TYPE {
            let expected = "a quantity (`type` stands only inside parentheses, as in `price(type)`)";
            let kind = Kind::Token { expected, found: "`type`".to_owned() };
            return Err(ExpressionError::new(kind, start));
        }
        let vocabulary = self.vocabulary;
        let (subject, node) = match (Variable::find(name), vocabulary.find(name)) {
            (Some(variable), _) => {
                let atom = variable.atom();
                (atom.subject, Node::Variable(variable, self.type_of(atom, start)?))
            }
            (None, Some(slot)) => {
                let atom = vocabulary.datum(slot);
                let (name, of) = (name.to_owned(), self.type_of(atom, start)?);
                (atom.subject, Node::Data { slot, name, of })
            }
            (None, None) => return Err(self.unknown(name, start)),
        };
        if subject == Subject::Job && !self.scope.job {
            return Err(ExpressionError::new(Kind::Unbound { name: name.to_owned(), subject }, start));
        }
        if *self.token() == Token::Symbol('(') {
            let found = Kind::Arguments { name: name.to_owned(), expected: "no arguments", found: 1 };
            return Err(ExpressionError::new(found, start));
        }
        let last = self.tokens[self.position - 1].1;
        Ok(Expr { node, span: start.to(last) })
    }

    fn unknown(&self, name: &str, span: Span) -> ExpressionError {
        let known = self.vocabulary.names().map(std::borrow::Cow::into_owned).collect();
        ExpressionError::new(Kind::UnknownName { name: name.to_owned(), known }, span)
    }

    /// Reads the worker type behind an atom that is of one; `None` for other atoms.
    fn type_of(&mut self, atom: &Atom, start: Span) -> Result<Option<TypeRef>, ExpressionError> {
        if atom.by_type { self.type_argument(&atom.name, start).map(Some) } else { Ok(None) }
    }

    /// Reads the owner behind `owned_by`, such as `("research")`.
    fn owned_by(&mut self, start: Span) -> Result<Expr, ExpressionError> {
        if !self.scope.job {
            let kind = Kind::Unbound { name: OWNED_BY.to_owned(), subject: Subject::Job };
            return Err(ExpressionError::new(kind, start));
        }
        if !self.take('(') {
            let expected = "one argument, the name of an owner";
            let kind = Kind::Arguments { name: OWNED_BY.to_owned(), expected, found: 0 };
            return Err(ExpressionError::new(kind, start));
        }
        let (Token::Name(owner) | Token::Quoted(owner)) = self.token().clone() else {
            return Err(self.unexpected("the name of an owner in quotation marks"));
        };
        self.position += 1;
        let last = self.span();
        if !self.take(')') {
            return Err(self.unexpected("`)`"));
        }
        Ok(Expr { node: Node::OwnedBy(owner), span: start.to(last) })
    }

    /// Reads a worker type in parentheses: `(type)`, `(v100)` or `("a100-80gb")`.
    fn type_argument(&mut self, name: &str, start: Span) -> Result<TypeRef, ExpressionError> {
        if !self.take('(') {
            let expected = "one argument, `type` or the name of a worker type";
            return Err(ExpressionError::new(
                Kind::Arguments { name: name.to_owned(), expected, found: 0 },
                start,
            ));
        }
        let of = match self.token() {
            Token::Name(of) if of == TYPE => {
                if !self.scope.worker_type {
                    let subject = Subject::WorkerType;
                    let kind = Kind::Unbound { name: format!("{name}(type)"), subject };
                    return Err(ExpressionError::new(kind, start.to(self.span())));
                }
                TypeRef::Bound
            }
            Token::Name(of) | Token::Quoted(of) => TypeRef::Named(of.clone()),
            _ => return Err(self.unexpected("`type` or the name of a worker type")),
        };
        self.position += 1;
        if self.take(')') { Ok(of) } else { Err(self.unexpected("`)`")) }
    }

    fn reduction(&mut self, reduction: Reduction, start: Span) -> Result<Expr, ExpressionError> {
        let before = self.scope;
        let at_hand = match reduction.over {
            Subject::Job => &mut self.scope.job,
            Subject::WorkerType => &mut self.scope.worker_type,
        };
        if std::mem::replace(at_hand, true) {
            let kind = Kind::Nested { name: reduction.to_string(), subject: reduction.over };
            return Err(ExpressionError::new(kind, start));
        }
        let (mut arguments, last) = self.arguments(&reduction.to_string(), start)?;
        self.scope = before;
        match (arguments.pop(), arguments.len()) {
            (Some(inner), 0) => {
                Ok(Expr { node: Node::Reduce(reduction, Box::new(inner)), span: start.to(last) })
            }
            (_, others) => {
                let kind = Kind::Arguments {
                    name: reduction.to_string(),
                    expected: "one argument",
                    found: others + 1,
                };
                Err(ExpressionError::new(kind, start.to(last)))
            }
        }
    }

    fn call(&mut self, function: Function, start: Span) -> Result<Expr, ExpressionError> {
        let (arguments, last) = self.arguments(function.name(), start)?;
        let several = function.rule().several;
        let fits = if several { arguments.len() >= 2 } else { arguments.len() == 1 };
        if !fits {
            let expected = if several { "two arguments or more" } else { "one argument" };
            let kind = Kind::Arguments { name: function.name().to_owned(), expected, found: arguments.len() };
            return Err(ExpressionError::new(kind, start.to(last)));
        }
        Ok(Expr { node: Node::Call(function, arguments), span: start.to(last) })
    }

    fn arguments(&mut self, name: &str, start: Span) -> Result<(Vec<Expr>, Span), ExpressionError> {
        if !self.take('(') {
            let kind =
                Kind::Arguments { name: name.to_owned(), expected: "arguments in parentheses", found: 0 };
            return Err(ExpressionError::new(kind, start));
        }
        let mut arguments = vec![self.sum()?];
        while self.take(',') {
            arguments.push(self.sum()?);
        }
        Ok((arguments, self.close()?))
    }
}
